"""Far sides for tests: ``python far_sides.py KIND MARKER``; one factual of a run meets the fault.

A kind that is JSON is the list of answers themselves.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from typing import Any

kind, marker = sys.argv[1], sys.argv[2]
held: list[bytes] = []


def tell(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def misbehave(number: int) -> None:
    """Once: the marker is a file that says it was."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if kind.startswith("["):
        print(f'{{"id": {number}, "answers": {kind}}}', flush=True)
    elif kind == "garbage":
        print("this is no JSON", flush=True)
    elif kind == "list":
        print("[1, 2]", flush=True)
    elif kind == "silence":
        time.sleep(60)
    elif kind == "half":
        sys.stdout.write('{"answers": [')
        sys.stdout.flush()
        os._exit(0)
    elif kind == "flood":
        for _ in range(1024):
            sys.stdout.write("x" * 2**20)
    elif kind == "exit":
        os._exit(3)
    elif kind == "question":
        tell({"ask": "the weather"})
        sys.stdin.readline()
        os._exit(4)
    elif kind == "category":
        tell({"answers": [{"row": [-1.0] * 100}], "id": number})
    elif kind == "status":
        tell({"answers": [{"row": None, "status": "PERFECT"}], "id": number})
    elif kind == "reason":
        tell({"answers": [{"row": None, "reason": "tired"}], "id": number})
    elif kind == "other":
        tell({"answers": [], "id": number + 1})
    elif kind == "unclear":
        tell({"ask": ["accepts"]})
        tell({"answers": [], "id": json.loads(sys.stdin.readline())["error"]})
    elif kind == "complaints":
        for _ in range(256):
            sys.stderr.write("x" * 2**20)
        os._exit(5)
    elif kind == "memory":
        tell({"memory": True, "id": number})
    elif kind == "hog":
        held.append(bytes(2**31))  # asked for, and not touched


for line in sys.stdin:
    message = json.loads(line)
    if message["do"] == "hello":
        tell({"version": 1, "id": message["id"]})
    elif message["do"] == "fit":
        train = message["train"]
        tell({"ask": "accepts", "rows": train})
        reply = json.loads(sys.stdin.readline())
        if kind == "beyond":
            tell({"error": reply["error"], "id": message["id"]})
        accepted = [row for row, says in zip(train, reply.get("reply", train), strict=True) if says]
        tell({"ok": True, "id": message["id"]})
    elif kind == "draw":
        drawn = random.Random(message["seed"]).choice([row for row in accepted if row != message["factual"]])
        tell({"answers": [{"row": drawn, "detail": str(message["limit"])}], "id": message["id"]})
    else:
        misbehave(message["id"])
        tell({"answers": [{"row": next(row for row in accepted if row != message["factual"])}], "id": message["id"]})
