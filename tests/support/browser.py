"""A real Chromium, controlled over its debugging pipe: no driver, no network, no port."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 60.0
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-proxy-server",
)


def program() -> str:
    return shutil.which("chromium") or shutil.which("chromium-browser") or ""


class Browser:
    """`with Browser() as browser: browser.open(url); browser.ask("document.title")`."""

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="browser-")
        self._number = 0
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        self._session = ""

    def __enter__(self) -> Browser:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._in, self._out = ours_in, ours_out
        # Chromium reads from its descriptor 3 and writes to 4. These pages are trusted, so
        # its sandbox is disabled, which root cannot use.
        shell = 'exec "$@" 3<&"$IN" 4>&"$OUT"'
        argv = [
            program(),
            *FLAGS,
            "--no-sandbox",
            f"--user-data-dir={self._profile}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *argv],
            env={**os.environ, "IN": str(theirs_in), "OUT": str(theirs_out), "HOME": self._profile},
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    # the pipe: JSON texts, each ended by a zero byte

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        request: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._out, json.dumps(request).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: dict[str, Any] = message["result"]
                return result
            self._events.append(message)

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], deadline - time.monotonic())
            assert ready, "the browser says nothing"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser is gone"
            self._rest += data
        first, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(first)
        return found

    def _wait(self, method: str) -> dict[str, Any]:
        while True:
            for at, event in enumerate(self._events):
                if event.get("method") == method:
                    return self._events.pop(at)
            self._events.append(self._read())

    # pages

    def open(self, page: Path | str) -> None:
        """Load a page and everything that it loads, and return once that is complete."""
        self._events.clear()
        url = page.as_uri() if isinstance(page, Path) else page
        answer = self.call("Page.navigate", url=url)
        assert not answer.get("errorText"), f"{url}: {answer['errorText']}"
        self._wait("Page.loadEventFired")

    def ask(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def click(self, selector: str) -> None:
        self.ask(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector: str, text: str) -> None:
        self.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def until(self, script: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.ask(script):
            assert time.monotonic() < deadline, f"never true: {script}"

    def complaints(self) -> list[str]:
        """Return what the page's console reported: refused scripts, missing files."""
        self.ask("0")  # the answer arrives after all earlier reports
        said = []
        for event in self._events:
            about = event.get("params", {})
            if event.get("method") == "Log.entryAdded":
                said.append(str(about["entry"]["text"]))
            elif event.get("method") == "Runtime.exceptionThrown":
                said.append(str(about["exceptionDetails"]))
            elif event.get("method") == "Page.javascriptDialogOpening":
                said.append(f"dialog: {about['message']}")
        return said

    def asked_for(self) -> list[str]:
        """Return the addresses that the page has fetched since it was opened."""
        self.ask("0")
        sent = [e for e in self._events if e.get("method") == "Network.requestWillBeSent"]
        return [str(event["params"]["request"]["url"]) for event in sent]

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def scripts(self, allowed: bool) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
