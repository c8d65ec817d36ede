"""Editing a settings file: one key changes; comments, order and all other values stay."""

from __future__ import annotations

import json
import os
import stat

from mngr.errors import MngrError, UsageError
from mngr.locks import Lock
from mngr.settings import join_key, leaves, lookup, merge, nest
from mngr.settings_file import parse_settings, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.struct import Json


def change(home: str, path: str, parts: tuple[str, ...], value: Json, private: bool) -> None:
    """Set one key, or take it out when `value` is None; a private file is for its owner only."""
    path = os.path.realpath(path)  # a link into someone's dotfiles stays a link
    os.makedirs(os.path.dirname(path), mode=0o700 if private else 0o777, exist_ok=True)
    with Lock(home, "settings", path):
        before = read_text(path) or ""
        after = edited(before, parts, value, path)
        if after != before:
            _replace(path, after, 0o600 if private else 0o666)


def edited(text: str, parts: tuple[str, ...], value: Json, path: str) -> str:
    """The text after the edit, proven to differ in nothing else."""
    import tomlkit

    tree = parse_settings(text, path)
    if value is None and lookup(tree, parts) is None:
        return text
    rest = _without(tree, parts)
    wanted = rest if value is None else merge(rest, nest(parts, value))
    document = tomlkit.parse(text)
    _assign(document, parts, value, path)
    after = tomlkit.dumps(document)
    if _exactly(parse_settings(after, path)) != _exactly(wanted):
        key = join_key(parts)
        raise MngrError(f"cannot change {key} in {path} and keep the rest", "use mngr config edit")
    return after


def _assign(table: dict[str, Json], parts: tuple[str, ...], value: Json, path: str) -> None:
    """On tomlkit's own tables, which are dicts that remember how they were written."""
    for at, part in enumerate(parts[:-1], 1):
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{join_key(parts[:at])} in {path} is not a table")
        table = table[part]  # type: ignore[assignment]
    if value is None:
        del table[parts[-1]]
    else:
        table[parts[-1]] = value


def _without(tree: dict[str, Json], parts: tuple[str, ...]) -> dict[str, Json]:
    kept = dict(tree)
    inner = kept.get(parts[0])
    if len(parts) == 1:
        kept.pop(parts[0], None)
    elif isinstance(inner, dict):
        kept[parts[0]] = _without(inner, parts[1:])
    return kept


def _exactly(tree: dict[str, Json]) -> str:
    """Comparable, with 1, 1.0 and true told apart; empty tables hold no value."""
    return json.dumps({k: v for k, v in leaves(tree) if v != {}}, sort_keys=True)


def _replace(path: str, text: str, mode: int) -> None:
    """Whole or not at all; a file that exists keeps its permissions."""
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            if os.path.exists(path):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except OSError as error:
        raise MngrError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
