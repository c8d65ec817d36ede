"""The frame of every page. Its style and its few lines of script lie in assets/."""

from __future__ import annotations

from importlib import resources

from mngr_view.markup import Child, Html, el, join

# Nothing is fetched from anywhere. A page on a disk has no origin that 'self' could mean, hence
# file:. The player is WebAssembly, and moves its cursor with styles.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
    "style-src 'self' file: 'unsafe-inline'; script-src 'self' file: 'wasm-unsafe-eval'; "
    "font-src data:; frame-src 'self' file:"
)


def page(title: str, *body: Child, up: str = "", head: Child = None, bare: bool = False) -> str:
    """`up` leads to the report's own folder."""
    lines = [
        Html("<!doctype html>"),
        Html('<html lang="en"><head><meta charset="utf-8">'),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("link", rel="stylesheet", href=f"{up}style.css"),
        head,
        Html(f"</head><body{' class=bare' if bare else ''}>"),
        *body,
        Html("</body></html>\n"),
    ]
    return join(lines, "\n")


def asset(name: str) -> bytes:
    return resources.files("mngr_view").joinpath("assets", name).read_bytes()
