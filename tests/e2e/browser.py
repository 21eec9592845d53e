"""Headless Chromium over its debugging protocol: open a page, run an expression, take a picture. No
driver needed.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.patience import HANG_SECONDS

WIDTH, HEIGHT = 1280, 1000
PATIENT: dict[str, Any] = {
    "open_timeout": HANG_SECONDS,
    "ping_interval": None,
}  # a busy machine may answer late
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    f"--window-size={WIDTH},{HEIGHT}",
)


@dataclass
class Page:
    """One tab. `requests` are the addresses it asked for, `errors` what went wrong in its
    scripts.
    """

    socket: ClientConnection
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call the protocol; events that come first are noted."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=HANG_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def open(self, address: str) -> None:
        """Go there."""
        self.send("Page.navigate", url=address)

    def run(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        found = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> bool:
        """Go on once an expression is true; an element that is there counts as true."""
        give_up = time.monotonic() + HANG_SECONDS
        while time.monotonic() < give_up:
            if self.run(f"Boolean({expression})"):
                return True
            time.sleep(0.1)
        raise AssertionError(
            f"never true: {expression}\n{self.run('document.body.innerText')}\n{self.errors}"
        )

    def press(self, key: str, *, text: str | None = None) -> None:
        """A key of the keyboard."""
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {})
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: Path) -> None:
        """The page as it looks, as PNG."""
        path.write_bytes(
            base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        )

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))


@dataclass
class Browser:
    """One process; each page has cookies, storage and cache of its own."""

    port: int
    control: Page

    @contextmanager
    def page(self) -> Iterator[Page]:
        """A page that shares nothing with others; closed at the end."""
        apart = self.control.send("Target.createBrowserContext")["browserContextId"]
        target = self.control.send(
            "Target.createTarget", url="about:blank", browserContextId=apart
        )["targetId"]
        try:
            with connect(
                f"ws://127.0.0.1:{self.port}/devtools/page/{target}", max_size=None, **PATIENT
            ) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Network"):
                    page.send(f"{domain}.enable")
                size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
                page.send("Emulation.setDeviceMetricsOverride", **size)
                page.send(
                    "Emulation.setFocusEmulationEnabled", enabled=True
                )  # as if it were the page in front
                yield page
        finally:
            self.control.send("Target.disposeBrowserContext", browserContextId=apart)


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A new browser; gone at the end."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        port = _port(profile / "DevToolsActivePort", process)
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/json/version", timeout=HANG_SECONDS
        ) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        with connect(address, max_size=None, **PATIENT) as socket:
            yield Browser(port, Page(socket))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    give_up = time.monotonic() + HANG_SECONDS
    while time.monotonic() < give_up:
        if file.is_file() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        assert process.poll() is None, "the browser ended at once"
        time.sleep(0.1)
    raise AssertionError("the browser did not open its debugging port")
