"""All settings, each with its key, kind, default and one line of help, and the check of values.

A `*` in a key stands for a name the user chooses.
"""

from __future__ import annotations

from mngr.errors import UnknownSetting, UsageError, nearest, shorten
from mngr.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mngr.model.struct import Json

# key: (kind, default, help). Options of commands are checked by the commands' own parsers.
SETTINGS: dict[str, tuple[str, Json, str]] = {
    "agent_types.*.cli_args": ("words", None, "arguments added to the command of the type"),
    "agent_types.*.command": ("words", None, "program of this type"),
    "agent_types.*.env.*": ("text", None, "variable in the environment of its agents"),
    "agent_types.*.parent_type": ("text", None, "parent type"),
    "commands.*.*": ("anything", None, "default of an option of a command"),
    "create_templates.*.*": ("anything", None, "option in a template for `create --template`"),
    "headless": ("flag", False, "never prompt; fail where an answer is required"),
    "hosts.timeout": ("duration", "15s", "timeout for reading a host"),
    "plugins.disabled": ("texts", [], "disabled plugins, by name or module"),
    "plugins.modules": ("texts", [], "Python modules to load as plugins"),
    "prefix": ("prefix", "mngr-", "prefix of the names of containers, pods and jobs"),
    "prices.*.cache_read": ("price", None, "dollars per million input tokens read from the cache"),
    "prices.*.cache_write": (
        "price",
        None,
        "dollars per million input tokens written to the cache",
    ),
    "prices.*.input": (
        "price",
        None,
        "dollars per million input tokens, by prefix of the model's name",
    ),
    "prices.*.output": ("price", None, "dollars per million output tokens"),
    "providers.ssh.config": ("text", None, "path of ssh's configuration"),
    "providers.ssh.hosts": ("texts", None, "machines to list even if they were never used"),
    "providers.*.*": ("anything", None, "setting of a provider"),
    "stop.grace": ("duration", "10s", "time for a stopped agent to end by itself"),
    "tmux.height": ("count", 50, "rows of an agent's screen"),
    "tmux.history": ("count", 50_000, "lines of scrollback"),
    "tmux.width": ("count", 200, "columns of an agent's screen"),
    "trash.keep": ("duration", "14d", "time before a destroyed agent is deleted"),
}

# Maximum depth of tables; deeper ones are a mistake or an attack on the recursion below.
DEEPEST = 32

_PATTERNS = {tuple(key.split(".")): kind for key, (kind, _, _) in SETTINGS.items()}

_NAMED = {pattern[:2] for pattern in _PATTERNS if len(pattern) > 2 and "*" not in pattern}
"""Tables whose settings are all in SETTINGS, although `*` stands for other tables beside them."""


def defaults() -> dict[str, Json]:
    """Return the lowest layer."""
    tree: dict[str, Json] = {}
    for key, (_, default, _) in SETTINGS.items():
        if default is not None:
            tree = merge(tree, nest(split_key(key), default))
    return tree


def merge(below: dict[str, Json], above: dict[str, Json]) -> dict[str, Json]:
    """Return both trees merged: tables by key, any other value from `above`."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(under, dict) and isinstance(value, dict):
            value = merge(under, value)
        merged[name] = value
    return merged


def nest(parts: tuple[str, ...], value: Json) -> dict[str, Json]:
    """Return a tree that contains only `value`, at `parts`."""
    for part in reversed(parts[1:]):
        value = {part: value}
    return {parts[0]: value}


def lookup(tree: Json, parts: tuple[str, ...]) -> Json:
    """Return the value at `parts`, or None; there is no null in settings."""
    for part in parts:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(part)
    return tree


def leaves(tree: dict[str, Json], above: tuple[str, ...] = ()) -> Iterator[tuple[str, Json]]:
    """Yield every dotted key with its value, without tables."""
    for name, value in tree.items():
        parts = (*above, name)
        if isinstance(value, dict):
            yield from leaves(value, parts)
        else:
            yield join_key(parts), value


def split_key(key: str) -> tuple[str, ...]:
    """Return the parts of a key: a, b and c.d for `a.b."c.d"`."""
    parts = _quoted_parts(key) if '"' in key else tuple(key.split("."))
    if not parts or len(parts) > DEEPEST or ('"' not in key and not all(parts)):
        raise UsageError(f"bad setting name {key[:80]!r}", "write it like trash.keep")
    return parts


def _quoted_parts(key: str) -> tuple[str, ...]:
    import re

    part = r'"(?:[^"\\]|\\.)*"|[^."]+'
    if not re.fullmatch(rf"(?:{part})(?:\.(?:{part}))*", key, re.DOTALL):
        return ()
    try:
        found = re.findall(part, key, re.DOTALL)
        return tuple(str(jsontext.loads(p)) if p[0] == '"' else p for p in found)
    except ValueError:
        return ()


def join_key(parts: tuple[str, ...]) -> str:
    """Return the key for these parts, the inverse of split_key."""
    bare = [part and not set(part) & set('."') for part in parts]
    return ".".join(p if b else jsontext.dumps(p) for p, b in zip(parts, bare, strict=True))


def kind_of(parts: tuple[str, ...]) -> str | None:
    """Return the kind of a setting; "table" for a parent of settings; None if unknown."""
    for pattern, kind in _PATTERNS.items():
        if not _fits(parts, pattern) or (pattern[1:2] == ("*",) and parts[:2] in _NAMED):
            continue
        if len(parts) < len(pattern):
            return "table"
        if len(parts) == len(pattern) or kind == "anything":
            return kind
    return None


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return all(want in ("*", part) for part, want in zip(parts, pattern, strict=False))


def check(value: Json, where: str, parts: tuple[str, ...] = ()) -> None:
    """Raise UsageError for the first unknown key or invalid value in a file or variable."""
    check_known(parts, where)
    kind = kind_of(parts) or ""
    expected, fits = _KINDS[kind]
    if not fits(value):
        raise UsageError(f"{join_key(parts)}{_in(where)} must be {expected}, not {_shown(value)}")
    if kind == "table" and isinstance(value, dict):
        for name, inner in value.items():
            check(inner, where, (*parts, name))


def sift(
    tree: dict[str, Json], where: str, above: tuple[str, ...] = ()
) -> tuple[dict[str, Json], list[UsageError]]:
    """Return the tree without unknown keys, and an error for each key left out."""
    kept: dict[str, Json] = {}
    unknown: list[UsageError] = []
    for name, value in tree.items():
        parts = (*above, name)
        try:
            check_known(parts, where)
        except UnknownSetting as error:
            unknown.append(error)
            continue
        if isinstance(value, dict) and kind_of(parts) == "table":
            value, more = sift(value, where, parts)
            unknown += more
        kept[name] = value
    return kept, unknown


def check_one(parts: tuple[str, ...], value: Json, where: str = "") -> None:
    """Check a single setting; the error for an unknown one has its full name."""
    check_known(parts, where)
    check(nest(parts, value), where)


def check_known(parts: tuple[str, ...], where: str = "") -> None:
    """Raise UsageError unless this setting or table of settings exists."""
    if kind_of(parts) is None:
        near = _nearest_key(parts)
        hint = f"did you mean {near!r}?" if near else "options go under commands.COMMAND"
        raise UnknownSetting(f"unknown setting {join_key(parts)!r}{_in(where)}", hint)


def _in(where: str) -> str:
    return f" in {where}" if where else ""


def _nearest_key(parts: tuple[str, ...]) -> str:
    """Return the key with its first unknown part corrected, else the most similar key."""
    for at, part in enumerate(parts):
        named = [p[at] for p in _PATTERNS if at < len(p) and _fits(parts[:at], p)]
        if part not in named and "*" not in named:
            near = nearest(part, named)
            mended = (*parts[:at], near, *parts[at + 1 :])
            kind = kind_of(mended) if near else None
            if kind is not None and (kind != "table" or len(parts) == 1):
                return join_key(mended)
            break
    return nearest(join_key(parts), known_keys())


def known_keys() -> list[str]:
    """Return the keys without a part that the user chooses."""
    return [key for key in SETTINGS if "*" not in key]


def _shown(value: Json) -> str:
    return shorten(jsontext.dumps(value, ascii=False))


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_duration(value: Json) -> bool:
    from mngr.model.durations import parse_duration

    try:
        parse_duration(str(value))
    except UsageError:
        return False
    return True


def _is_prefix(value: Json) -> bool:
    """Return whether all engines accept names with this prefix."""
    if not isinstance(value, str) or not value.isascii() or len(value) > 30:
        return False
    return value[:1].isalpha() and value == value.lower() and value.replace("-", "a").isalnum()


_KINDS: dict[str, tuple[str, Callable[[Json], bool]]] = {
    "anything": ("anything", lambda value: True),
    "count": (
        "a whole number above 0",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
    ),
    "duration": ("a duration such as 14d, 1h30m or 90s", _is_duration),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "prefix": ("up to 30 lower-case letters, digits and '-', a letter first", _is_prefix),
    "price": (
        "a number of dollars, 0 or more",
        lambda value: (
            isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9
        ),
    ),
    "table": ("a table", lambda value: isinstance(value, dict)),
    "text": ("a string", lambda value: isinstance(value, str)),
    "texts": ('a list of strings such as ["a", "b"]', _is_texts),
    "words": (
        "a string or a list of strings",
        lambda value: isinstance(value, str) or _is_texts(value),
    ),
}
