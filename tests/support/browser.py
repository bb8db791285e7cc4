"""Chromium without a window, driven over a pipe by its own protocol: pages are seen as people do."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.parts import missing

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
START = """
import os, sys
ends = [os.dup(int(end)) for end in sys.argv[1:3]]
ends = [os.dup(end) if end in (3, 4) else end for end in ends]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser listens at descriptor 3 and speaks at 4."""

REPLACED = ("navigated or closed", "Cannot find default execution context", "context was destroyed")
"""Parts of the errors that the browser returns for a script if its page is replaced while the script runs."""


class BrowserStuck(Exception):
    """The browser itself answers nothing or loses what is done: the test is run again with a new one."""


class Browser:
    """One page. `problems` are what its console and its policy complain of."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._held = b""
        self._numbers = itertools.count(1)
        self.stuck = False
        self.takes_pictures = True
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{part}.enable")
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)  # no timer is slowed down

    def _call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next(60)
            if said.get("id") == number:
                if "error" in said:
                    raise AssertionError(f"{method}: {said['error']}")
                return said["result"]

    def _next(self, seconds: float) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while b"\0" not in self._held:
            left = until - time.monotonic()
            if left <= 0:
                raise self._give_up(f"it says nothing for {seconds:.0f} seconds")
            if select.select([self._read], [], [], left)[0]:
                data = os.read(self._read, 1 << 20)
                if not data:
                    raise self._give_up("it has ended")
                self._held += data
        line, _, self._held = self._held.partition(b"\0")
        said: dict[str, Any] = json.loads(line)
        method, about = said.get("method"), said.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(about["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        return said

    def _give_up(self, what: str) -> BrowserStuck:
        self.stuck = True
        return BrowserStuck(what)

    def look(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """The size of the window, and what its owner prefers."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        wish = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[wish])

    def go(self, url: str) -> None:
        """Opens an address."""
        self._call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """What a piece of script gives, from outside the page's own policy."""
        found = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> None:
        """Until it is true. Raises BrowserStuck if it does not become true and the browser draws no frame."""
        until = time.monotonic() + seconds
        while not self._holds(script):
            if time.monotonic() >= until:
                if not self.draw():
                    raise self._give_up(f"it draws no frame, and {script} did not come true")
                raise AssertionError(f"{script} did not come true; {self.problems}")
            time.sleep(0.05)

    def _holds(self, script: str) -> bool:
        try:
            return bool(self.value(script))
        except AssertionError as error:
            if any(part in str(error) for part in REPLACED):  # ask the next page
                return False
            raise

    def type(self, text: str) -> None:
        """As a keyboard does."""
        self._call("Input.insertText", text=text)

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """One key."""
        about = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
        self._call("Input.dispatchKeyEvent", type="keyDown", **about)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def drop(self, selector: str, *paths: Path, taken: bool = True) -> None:
        """Drops files on an element, as a file manager does. A page that takes none sees no drop."""
        x, y = self.value(
            f"(() => {{ const box = document.querySelector({selector!r}).getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        self.value("addEventListener('drop', () => { window.wasDropped = true; }, true)")
        for _ in range(3):
            for kind in ("dragEnter", "dragOver", "drop"):
                self._call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)
                self.draw()  # the page has seen it
            if self.value("window.wasDropped === true"):  # a busy browser loses some
                break
        else:
            if taken:
                raise self._give_up("it loses what is dropped on it")
        self.value("delete window.wasDropped")

    def draw(self) -> bool:
        """Wait for a frame, at most a second; return whether there was one. A busy browser may draw none."""
        drawn = self.value(
            "new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(() => done(1)));"
            " setTimeout(() => done(0), 1000); })"
        )
        return bool(drawn)

    def picture(self, path: Path) -> None:
        """Write a screenshot to a file, unless `takes_pictures` is False."""
        if not self.takes_pictures:
            return
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile in a folder, or a skip that says there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        missing(f"no browser is installed ({', '.join(NAMES)}): apt-get install chromium")
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    ends = [str(in_read), str(out_write)]
    process = subprocess.Popen(
        [sys.executable, "-c", START, *ends, str(found), *FLAGS, f"--user-data-dir={folder}"],
        pass_fds=(in_read, out_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(in_read)
    os.close(out_write)
    try:
        yield Browser(out_read, in_write)
    finally:
        for end in (in_write, out_read):
            os.close(end)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
