"""Chromium driven by chromedriver, through the W3C's protocol: clicks, keys, scripts, pictures, and its console."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
SETTINGS = {
    "goog:chromeOptions": {
        "binary": CHROMIUM,
        "args": ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"],
    },
    "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
}
TALLEST = 4000  # pixels of a picture
TAB, ENTER, DOWN = "\ue004", "\ue007", "\ue015"


class Browser:
    """One window."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str, **body: Any) -> Any:
        """A command of the protocol."""
        request = urllib.request.Request(f"{self.address}/{path}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as fault:
            raise AssertionError(fault.read().decode()) from fault

    def open(self, address: str, width: int = 1280) -> None:
        """Open a page in a window so wide, and wait until it is drawn."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.ask("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=metrics)
        self.ask("url", url="about:blank")
        self.ask("url", url=address)
        self.wait()

    def wait(self) -> None:
        """Until what was chosen last is drawn."""
        for _ in range(200):
            if self.run("return document.body.dataset.ready") == "yes":
                return
            time.sleep(0.05)
        raise AssertionError("the page was not drawn within 10 s")

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self.ask("execute/sync", script=script, args=[])

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, in what has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def choose(self, name: str, value: str) -> None:
        """Choose in a list, as a user does."""
        self.run(
            f"const list = document.querySelector('select[name={name}]'); delete document.body.dataset.ready;"
            f"list.value = {json.dumps(value)}; list.dispatchEvent(new Event('change'))"
        )
        self.wait()

    def picture(self, path: Path) -> None:
        """The page as a PNG, as far as such a picture may reach."""
        width, height = self.run("const page = document.documentElement; return [page.clientWidth, page.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, TALLEST), "scale": 1}
        params = {"captureBeyondViewport": True, "clip": clip}
        path.write_bytes(
            base64.b64decode(self.ask("goog/cdp/execute", cmd="Page.captureScreenshot", params=params)["data"])
        )

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What came into a log since it was last read: ``browser`` for the console, ``performance`` for requests."""
        return list(self.ask("se/log", type=kind))

    def requested(self) -> list[str]:
        """Addresses of all that was asked for since the last call."""
        events = (json.loads(line["message"])["message"] for line in self.log("performance"))
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@contextmanager
def browser() -> Iterator[Browser]:
    """A window, closed at the end."""
    assert DRIVER
    process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        port = next(found[1] for line in process.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        new = Browser(f"http://127.0.0.1:{port}")
        made = new.ask("session", capabilities={"alwaysMatch": SETTINGS})
        session = f"{new.address}/session/{made['sessionId']}"
        try:
            yield Browser(session)
        finally:
            urllib.request.urlopen(urllib.request.Request(session, method="DELETE"), timeout=60)
    finally:
        process.terminate()
        process.wait(30)
