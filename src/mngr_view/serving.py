"""Serve a report over HTTP, only on this machine and under a secret URL.

Any program or web page on this machine can connect to the port, so the URL contains a secret.
Requests for another host name are refused, against DNS rebinding.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit

HOST = "127.0.0.1"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""Everything else is a download: files of agents are never shown as pages."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, port: int, renew: Callable[[], None]) -> None:
        super().__init__((HOST, port), PageRequest)
        self.folder = folder.resolve()
        self.token = secrets.token_urlsafe(18)
        self._renew, self._lock = renew, Lock()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/index.html"

    def renew(self) -> None:
        """Update the report before its first page is served."""
        with self._lock:
            self._renew()

    def found(self, address: str) -> Path | None:
        """Return the file of a URL; None if it is not in the folder."""
        token, _, rest = unquote(urlsplit(address).path).lstrip("/").partition("/")
        if not secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return None
        if "\0" in rest or any(part.startswith(".") for part in rest.split("/")):
            return None
        path = (self.folder / (rest or "index.html")).resolve()
        return path if path.is_relative_to(self.folder) and path.is_file() else None


class PageRequest(BaseHTTPRequestHandler):
    server: Server
    server_version = "mngr"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        path = self.server.found(self.path) if self._is_for_us() else None
        if path is not None and path.name == "index.html":
            self.server.renew()
        try:
            data = path.read_bytes() if path else None
        except OSError:
            data = None
        if path is None or data is None:
            self._head(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", 0)
            return
        self._head(HTTPStatus.OK, KINDS.get(path.suffix, "application/octet-stream"), len(data))
        if with_body:
            self.wfile.write(data)

    def _is_for_us(self) -> bool:
        port = self.server.server_port
        return self.headers.get("Host", "") in (f"{HOST}:{port}", f"localhost:{port}")

    def _head(self, status: HTTPStatus, kind: str, length: int) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": length}.items():
            self.send_header(name, str(value))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log: it would contain the secret."""
