"""Read settings from files and single values, with an error of one line for each mistake."""

from __future__ import annotations

import os
import stat

from mngr.errors import UsageError
from mngr.model import jsontext
from mngr.model.struct import Json
from mngr.settings.schema import DEEPEST

_LARGEST = 1 << 20


def read_settings(path: str) -> dict[str, Json] | None:
    """Return the settings in the file; None if there is no file."""
    text = read_text(path)
    return None if text is None else parse_settings(text, path)


def read_text(path: str) -> str | None:
    """Return the text of a file; raise UsageError unless it is a small UTF-8 file."""
    try:
        data = _read_small(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text") from None


def _read_small(path: str) -> bytes:
    found = os.stat(path)
    # Check the type before opening: opening a FIFO would wait for a writer.
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "a special file"
        raise UsageError(f"{path} is {what}, not a settings file")
    if found.st_size > _LARGEST:
        raise UsageError(f"{path} is larger than 1 MiB", "it cannot be a settings file")
    with open(path, "rb") as file:
        return file.read(_LARGEST)


def parse_settings(text: str, path: str) -> dict[str, Json]:
    """Return TOML as JSON values; errors name `path`."""
    import tomllib

    try:
        tree = _plain(tomllib.loads(text))
    except RecursionError:
        raise UsageError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise UsageError(_located(path, str(error))) from None
    assert isinstance(tree, dict)
    return tree


def _located(path: str, complaint: str) -> str:
    """Return `FILE:3: invalid value (column 5)` for `Invalid value (at line 3, column 5)`."""
    what, _, place = complaint.removesuffix(")").partition(" (at ")
    what = what[:1].lower() + what[1:]
    line, _, column = place.removeprefix("line ").partition(", ")
    return f"{path}:{line}: {what} ({column})" if column else f"{path}: {what} {place}".rstrip()


def _plain(value: object, depth: int = 0) -> Json:
    """Return JSON values; dates, infinity and not-a-number become text."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        return {name: _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, (str, int)) or (isinstance(value, float) and value - value == 0):
        return value
    return str(value)


def parse_value(text: str) -> Json:
    """Return the value of an argument or variable: as TOML if it is valid TOML, else as text."""
    # Most values are words or small numbers, and tomllib takes half as long as Python to start.
    if text in ("true", "false"):
        return text == "true"
    if text.isdecimal() and text.isascii() and len(text) < 16 and (text[0] != "0" or text == "0"):
        return int(text)
    if not text.startswith(tuple("\"'[{+-0123456789tfin \t")):
        return text
    if text[:-1].isdecimal() and text[-1] in "smhd":  # a duration
        return text
    if text.startswith('["') and "\\" not in text and text.isprintable():
        return _texts(text) or _toml_value(text)
    return _toml_value(text)


def _texts(text: str) -> Json:
    """Return a list of texts if it is written alike in TOML and JSON, or None."""
    try:
        found = jsontext.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, list) and all(isinstance(x, str) for x in found) else None


def _toml_value(text: str) -> Json:
    import tomllib

    try:
        # In an inline table, no comment and no second line can follow the value.
        document = tomllib.loads(f"value = {{inner = {text}}}")
        value = document["value"]["inner"]
        alone = len(document) == len(document["value"]) == 1
        return _plain(value) if alone and _is_json(value) else text
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def _is_json(value: object) -> bool:
    """Return whether _plain keeps the value; a single date or infinity is kept as typed."""
    if isinstance(value, (dict, list, str, int)):
        return True
    return isinstance(value, float) and value - value == 0
