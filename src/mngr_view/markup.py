"""HTML that cannot be forgotten to be escaped: whatever is not Html already becomes text.

Names, outputs and summaries come from agents. A plain `str` is always escaped, and loses what
steers terminals; only `el` and `join` make Html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from mngr.cli.app.output import clean

VOID = frozenset(("br", "col", "hr", "input", "link", "meta"))
LONGEST_LINE = 2000


class Html(str):
    """Text that is markup. Adding a plain text to it gives plain text again: the safe side."""

    __slots__ = ()


Child = str | int | float | None


def plain(text: str) -> str:
    """Without terminal escapes, control characters and halves of characters."""
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
    """`class_` is `class`; an attribute that is None or False is left out, True stands alone."""
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
    """To another page of the report; each part is one segment of a relative address."""
    where = "/".join(quote(part, safe="", errors="replace") for part in parts)
    return el("a", text, href=f"{where}#{quote(anchor)}" if anchor else where)


def shortened(text: str, limit: int) -> str:
    """One line of it, for a table."""
    line = " ".join(plain(text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def cut(text: str, limit: int) -> str:
    """Cleaned, with over-long lines and an over-long rest cut, and each cut said."""
    whole = plain(text[: 2 * limit])
    kept = whole[:limit]
    if max(map(len, kept.split("\n")), default=0) > LONGEST_LINE:
        kept = "\n".join(_line(each) for each in kept.split("\n"))
    missing = max(0, len(text) - limit)
    return f"{kept}\n… {missing:,} more characters" if missing else kept


def _line(line: str) -> str:
    more = len(line) - LONGEST_LINE
    return f"{line[:LONGEST_LINE]} … {more:,} more characters" if more > 0 else line


def pre(text: str, limit: int = 200_000, class_: str | None = None) -> Html:
    # A browser drops the first newline in a <pre>.
    return el("pre", Html("\n"), cut(text, limit), class_=class_)


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
    """Of so many lines; colours are classes, so the style decides."""
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
