"""Model files whose bytes depend on the model alone, not on the process that wrote them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.errors import HarnessError, short
from harness.models.files import SCHEMA, check_archive

DATE = (1980, 1, 1, 0, 0, 0)  # of every member: the earliest that a zip can hold
UNIX = 3  # where a zip says it was made


def canonical(path: Path) -> tuple[str, bytes]:
    """The sha256 of what a skops file holds, and a file that holds the same: numbers in place of memory addresses.

    Two processes that save equal models give the same sha256. Arrays that are equal are held once, uncompressed; bytes
    between the fields of their records, such as nodes of trees, are 0.

    Raises
    ------
    HarnessError
        If it is no skops file.
    """
    check_archive(path)
    digests: dict[str, str] = {}  # by the name of a member
    names: dict[str, str] = {}  # of members, by digest
    numbers: dict[Any, int] = {}  # by memory address

    def hashed(node: dict[str, Any]) -> dict[str, Any]:
        node = {key: value for key, value in node.items() if key != "__id__"}
        return {**node, "file": digests[node["file"]]} if node.get("file") in digests else node

    def numbered(node: dict[str, Any]) -> dict[str, Any]:
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
        if (file := node.get("file")) in digests:
            node["file"] = names.setdefault(digests[file], f"{len(names)}{Path(file).suffix}")
        return node

    try:
        with zipfile.ZipFile(path) as archive:
            contents = {name: _cleared(name, archive.read(name)) for name in sorted(archive.namelist())}
        schema = contents.pop(SCHEMA)
        digests |= {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        digest = hashlib.sha256(json.dumps(json.loads(schema, object_hook=hashed)).encode()).hexdigest()
        written = json.dumps(json.loads(schema, object_hook=numbered)).encode()
    except Exception as fault:
        raise HarnessError(f"{path} is no skops file ({short(fault)}); run its command again.") from fault
    by_digest = {digests[name]: content for name, content in contents.items()}
    return digest, zipped({SCHEMA: written, **{names[key]: by_digest[key] for key in names}})


def _cleared(name: str, content: bytes) -> bytes:
    """A member; of an array of records, with 0 for the bytes of no field, which are whatever was in memory."""
    if not name.endswith(".npy"):
        return content
    array = np.load(io.BytesIO(content), allow_pickle=False)
    kind = array.dtype
    if kind.fields is None:
        return content
    held = np.zeros(kind.itemsize, dtype=bool)
    for part, offset, *_ in kind.fields.values():
        held[offset : offset + part.itemsize] = True
    start = len(content) - array.nbytes  # after the header
    records = np.frombuffer(content, dtype=np.uint8, offset=start).reshape(-1, kind.itemsize)
    return content[:start] + np.where(held, records, 0).astype(np.uint8).tobytes()


def zipped(members: Mapping[str, bytes], deflated: Collection[str] = ()) -> bytes:
    """A zip file of these members in this order, the same bytes at any time on any machine; few of them compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            about = zipfile.ZipInfo(name, DATE)
            about.create_system, about.external_attr = UNIX, 0o644 << 16
            archive.writestr(about, content, zipfile.ZIP_DEFLATED if name in deflated else zipfile.ZIP_STORED)
    return file.getvalue()
