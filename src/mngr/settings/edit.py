"""Edit one key of a settings file; comments, order and all other values are kept."""

from __future__ import annotations

import json
import os

from mngr import files
from mngr.errors import MngrError, UsageError
from mngr.locks import Lock
from mngr.model.struct import Json
from mngr.settings.file import parse_settings, read_text
from mngr.settings.schema import join_key, leaves, lookup, merge, nest


def change(home: str, path: str, parts: tuple[str, ...], value: Json, private: bool) -> None:
    """Set one key, or remove it if `value` is None; only the owner can read a private file."""
    path = os.path.realpath(path)  # a link into someone's dotfiles stays a link
    os.makedirs(os.path.dirname(path), mode=0o700 if private else 0o777, exist_ok=True)
    with Lock(home, "settings", path):
        before = read_text(path) or ""
        after = edited(before, parts, value, path)
        if after != before:
            try:
                files.replace(path, after.encode(), 0o600 if private else 0o666, durable=True)
            except OSError as error:
                raise MngrError(f"cannot write {path}: {error.strerror}") from None


def edited(text: str, parts: tuple[str, ...], value: Json, path: str) -> str:
    """Return the text after the edit, after checking that nothing else changed."""
    tree = parse_settings(text, path)
    if value is None and lookup(tree, parts) is None:
        return text
    for size in range(1, len(parts)):
        if not isinstance(lookup(tree, parts[:size]) or {}, dict):
            raise UsageError(f"{join_key(parts[:size])} in {path} is not a table")
    rest = _without(tree, parts)
    wanted = rest if value is None else merge(rest, nest(parts, value))
    for write in (_rewritten,) if value is None else (_rewritten, _on_top):
        after = write(text, parts, value)
        if _holds(after, wanted):
            return after
    key = join_key(parts)
    raise MngrError(
        f"cannot change {key} in {path} without changing other settings", "use mngr config edit"
    )


def _rewritten(text: str, parts: tuple[str, ...], value: Json) -> str:
    """Return the text edited with tomlkit, whose tables keep the original formatting."""
    import tomlkit

    # tomlkit would append a new key to a last line that has no newline.
    document = tomlkit.parse(text if text.endswith("\n") else f"{text}\n".lstrip("\n"))
    table: dict[str, Json] = document
    for part in parts[:-1]:
        table.setdefault(part, {})
        table = table[part]  # type: ignore[assignment]
    if value is None:
        del table[parts[-1]]
    else:
        table[parts[-1]] = value
    return tomlkit.dumps(document)


def _on_top(text: str, parts: tuple[str, ...], value: Json) -> str:
    """Return the text after a new first line `a.b.c = 1`.

    tomlkit would insert a new table between dotted keys.
    """
    import tomlkit

    document = tomlkit.document()
    document.add(tomlkit.key(list(parts)), tomlkit.item(_inline(value)))
    return tomlkit.dumps(document) + text


def _inline(value: Json) -> Json:
    """Return tables as {a = 1}; the keys below a [header] would become part of it."""
    if not isinstance(value, dict):
        return value
    from tomlkit import inline_table

    table: dict[str, Json] = inline_table()
    table.update({name: _inline(inner) for name, inner in value.items()})
    return table


def _without(tree: dict[str, Json], parts: tuple[str, ...]) -> dict[str, Json]:
    kept = dict(tree)
    inner = kept.get(parts[0])
    if len(parts) == 1:
        kept.pop(parts[0], None)
    elif isinstance(inner, dict):
        kept[parts[0]] = _without(inner, parts[1:])
    return kept


def _holds(text: str, wanted: dict[str, Json]) -> bool:
    """Return whether the text has exactly these settings.

    tomlkit makes mistakes with rare mixtures of dotted keys and tables.
    """
    try:
        return _exactly(parse_settings(text, "")) == _exactly(wanted)
    except UsageError:
        return False


def _exactly(tree: dict[str, Json]) -> str:
    """Return a text to compare trees by; 1, 1.0 and true differ, empty tables are ignored."""
    return json.dumps(dict(leaves(tree)), sort_keys=True)
