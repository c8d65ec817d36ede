"""HTML that is escaped by default: everything that is not `Html` becomes text.

Names, outputs and summaries come from agents. A plain `str` is always escaped and loses terminal
escapes. Only `el` and `join` create Html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib import resources
from urllib.parse import quote

from mngr.cli.app.output import clean

VOID = frozenset(("br", "col", "hr", "input", "link", "meta"))
LONGEST_LINE = 2000


class Html(str):
    """Markup. Adding a plain text to it gives plain text, which is escaped later."""

    __slots__ = ()


Child = str | int | float | None


def plain(text: str) -> str:
    """Return the text without terminal escapes, control characters and lone surrogates."""
    if text.isprintable():
        return text
    lines = re.sub(r"\r\n?", "\n", text)
    return clean(lines).encode("utf-8", "replace").decode()


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def html(child: Child) -> str:
    if isinstance(child, Html):
        return child
    return "" if child is None else escape(plain(str(child)))


def join(children: Iterable[Child], between: str = "") -> Html:
    return Html(between.join(html(each) for each in children))


def el(name: str, /, *children: Child, **attributes: Child | bool) -> Html:
    """Return an element. `class_` is `class`; None and False omit an attribute."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{''.join(html(each) for each in children)}</{name}>")


def _attribute(key: str, value: Child | bool) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(plain(str(value)))}"'


def link(text: Child, *parts: str, anchor: str = "") -> Html:
    """Return a link to a page of the report; each part is one segment of the URL."""
    where = "/".join(quote(part, safe="", errors="replace") for part in parts)
    return el("a", text, href=f"{where}#{quote(anchor)}" if anchor else where)


def shortened(text: str, limit: int) -> str:
    """Return the text as one line, for a table."""
    line = " ".join(plain(text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def cut(text: str, limit: int) -> str:
    """Return the text with long lines and a long rest cut, and a note at each cut."""
    whole = plain(text[: 2 * limit])
    kept = whole[:limit]
    if max(map(len, kept.split("\n")), default=0) > LONGEST_LINE:
        kept = "\n".join(_line(each) for each in kept.split("\n"))
    missing = max(0, len(text) - limit)
    return f"{kept}\n… {missing:,} more characters" if missing else kept


def _line(line: str) -> str:
    more = len(line) - LONGEST_LINE
    return f"{line[:LONGEST_LINE]} … {more:,} more characters" if more > 0 else line


def pre(text: str, limit: int = 200_000) -> Html:
    # A browser drops the first newline in a <pre>.
    return el("pre", Html("\n"), cut(text, limit))


def folded(title: Child, *children: Child, open: bool = False) -> Html:
    return el("details", el("summary", title), *children, open=open)


def listed(items: Iterable[Child], class_: str | None = None) -> Html:
    return el("ul", *(el("li", each) for each in items), class_=class_)


def table(heads: Iterable[str], rows: Iterable[Iterable[Child]], class_: str | None = None) -> Html:
    head = el("tr", *(el("th", each) for each in heads))
    body = [el("tr", *(el("td", cell) for cell in row)) for row in rows]
    return el(
        "div", el("table", el("thead", head), el("tbody", *body), class_=class_), class_="wide"
    )


def diff(text: str, limit: int) -> Html:
    """Return a diff of at most `limit` lines; the style sheet colours its classes."""
    lines = cut(text, 400_000).split("\n")
    more = len(lines) - limit
    shown = [_diff_line(line) for line in lines[:limit]]
    if more > 0:
        shown.append(el("span", f"… {more:,} more lines", class_="d-meta"))
    return el("pre", Html("\n"), join(shown, "\n"), class_="diff")


def _diff_line(line: str) -> Html:
    if line.startswith(("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "@@")):
        kind = "d-at" if line.startswith("@@") else "d-meta"
        return el("span", line, class_=kind)
    if line.startswith(("+", "-")):
        return el("span", line, class_="d-in" if line[0] == "+" else "d-out")
    return Html(html(line))


# whole pages

# Nothing is loaded from elsewhere. A page on a disk has no origin for 'self', so file: is allowed.
# The player is WebAssembly and moves its cursor with styles.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
    "style-src 'self' file: 'unsafe-inline'; script-src 'self' file: 'wasm-unsafe-eval'; "
    "font-src data:; frame-src 'self' file:"
)


def page(title: str, *body: Child, up: str = "", head: Child = None, bare: bool = False) -> str:
    """Return a page; `up` leads to the folder of the report."""
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
