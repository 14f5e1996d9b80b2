"""A real browser, spoken to over a pipe (Chrome DevTools Protocol)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")


class Browser:
    """One page of a browser."""

    def __init__(self, commands: int, messages: int) -> None:
        self._commands = commands
        self._messages = messages
        self._ids = count(1)
        self._seen = b""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")

    def open(self, url: str) -> str:
        """Open an address and return the text of the page."""
        self._call("Page.navigate", url=url)
        self._until("Page.loadEventFired")
        return self.text

    def press(self, value: str) -> str:
        """Press the button with that value, and return the text of the page that follows."""
        where = self.run(
            f"(() => {{const button = document.querySelector('button[value={value}]'); button.scrollIntoView();"
            "const at = button.getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            at = {"x": where[0], "y": where[1], "button": "left", "clickCount": 1}
            self._call("Input.dispatchMouseEvent", type=kind, **at)
        self._until("Page.loadEventFired")
        return self.text

    def follow(self, selector: str, pages: int = 1) -> str:
        """Follow the link that a selector finds, over so many pages, and return the text of the last."""
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        for _ in range(pages):
            self._until("Page.loadEventFired")
        return self.text

    def fitted(self, width: int) -> int:
        """Make the page so many pixels wide, and return how many its content takes."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        return int(self.run("document.documentElement.scrollWidth"))

    @property
    def text(self) -> str:
        """What the page shows."""
        return str(self.run("document.body.innerText"))

    def run(self, expression: str) -> Any:
        """Return what an expression gives in the page, once it is there."""
        given = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self._call("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, *, width: int, dark: bool) -> None:
        """Show pages at a width in pixels of CSS, light or dark."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def type_key(self, key: str) -> None:
        """Press a key, such as Tab."""
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if (key, kind) == ("Enter", "keyDown") else {}
            self._call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **text)

    def picture(self, file: Path) -> None:
        """Take a picture of the page, as long as it is."""
        taken = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            pass
        assert "error" not in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def _until(self, event: str) -> None:
        while self._next().get("method") != event:
            pass

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._seen:
            read = os.read(self._messages, 1 << 16)
            assert read, "the browser has ended"
            self._seen += read
        line, _, self._seen = self._seen.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Give a page of a browser that keeps what it keeps in a folder."""
    assert CHROMIUM is not None
    there, commands = os.pipe()
    messages, back = os.pipe()
    options = [
        "--headless",
        "--hide-scrollbars",
        "--remote-debugging-pipe",
        "--disable-gpu",
        f"--user-data-dir={folder}",
    ]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    # The browser reads commands from descriptor 3 and writes to 4.
    script = f'exec "$0" "$@" 3<&{there} 4>&{back}'
    process = subprocess.Popen(
        ["bash", "-c", script, CHROMIUM, *options, "about:blank"], pass_fds=(there, back), stderr=subprocess.DEVNULL
    )
    os.close(there)
    os.close(back)
    try:
        yield Browser(commands, messages)
    finally:
        os.close(commands)  # it ends upon that
        os.close(messages)
        try:
            process.wait(60)
        finally:
            process.kill()
