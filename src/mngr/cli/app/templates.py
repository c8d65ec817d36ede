"""Output formats: the three by name, and templates such as '{name}\\t{host.state}'."""

from __future__ import annotations

from mngr.errors import UsageError, suggestion
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FORMATS = ("human", "json", "jsonl")

OPEN_MAPS = ("labels", "tags", "plugin")
"""Maps with keys that the user chooses; a missing key is empty, not an error."""

# re is imported on use: most runs do not need it, and it takes 5 ms.
_PIECE = r"\{\{|\}\}|\{([^{}]+)\}|\\([tn\\])|([^{}\\]+|\\)"
_ESCAPES = {"t": "\t", "n": "\n", "\\": "\\"}


def check_format(text: str) -> str:
    """Return the format; raise UsageError if it is neither known nor a template."""
    if "{" in text:
        parse_template(text)
    elif text not in FORMATS:
        hint = suggestion(text, FORMATS, "use human, json, jsonl or a '{template}'")
        raise UsageError(f"unknown format {text!r}", hint)
    return text


def parse_template(text: str) -> list[tuple[str, str]]:
    """Return pairs of a literal text and the field after it; the last field is empty."""
    import re

    pieces: list[tuple[str, str]] = []
    literal, at, piece = "", 0, re.compile(_PIECE)
    while at < len(text):
        match = piece.match(text, at)
        if match is None:
            raise UsageError(f"unbalanced {text[at]!r} in the template {text!r}", "double it")
        at = match.end()
        field, escaped, plain = match.groups()
        if field is None:
            literal += plain or _ESCAPES.get(escaped) or match[0][0]
        else:
            pieces.append((literal, field.strip()))
            literal = ""
    return [*pieces, (literal, "")]


def check_fields(
    asked: Iterable[str], rows: Sequence[Mapping[str, Json]], known: Sequence[str] = ()
) -> None:
    """Raise UsageError for the first field that is neither in `known` nor in a row."""
    names = dict.fromkeys(known)
    asked = [field for field in asked if field not in names and not _is_open(field)]
    for row in rows if asked else ():
        names.update(dict.fromkeys(_names(row)))
    for field in asked:
        if names and field not in names:
            hint = suggestion(field, names, f"there are {', '.join(names)}")
            raise UsageError(f"unknown field {field!r}", hint)


def _names(row: Mapping[str, Json], above: str = "") -> Iterable[str]:
    for name, value in row.items():
        yield above + name
        if isinstance(value, dict):
            yield from _names(value, f"{above}{name}.")


def _is_open(field: str) -> bool:
    return any(part in OPEN_MAPS for part in field.split(".")[:-1])
