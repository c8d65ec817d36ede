"""JSON, as the json module reads and writes it, without importing that module.

It imports re, enum and collections, which takes nearly as long as starting Python. Its C code does
not, so it is called here directly. Only text that this code cannot read goes to the json module.
"""

from __future__ import annotations

from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

from mngr.model.struct import Json


class _Context:
    """The settings of a decoder, as the C code looks them up."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = {word: float(word) for word in ("NaN", "Infinity", "-Infinity")}.__getitem__


_scan = make_scanner(_Context)  # type: ignore[arg-type]


def loads(data: str | bytes) -> Json:
    """Return what `json.loads` returns, and raise what it raises."""
    try:
        text = data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data
        text = text.strip(" \t\n\r")
        value, end = _scan(text, 0)
        if end == len(text):
            return value  # type: ignore[no-any-return]
    except (ValueError, StopIteration, SystemError):
        pass  # without the json module, the C code does not find the class of its error
    import json

    return json.loads(data)  # type: ignore[no-any-return]


def dumps(value: object, *, ascii: bool = True, compact: bool = False) -> str:
    """Return what `json.dumps` returns; `ascii` is its `ensure_ascii`."""
    quoted = encode_basestring_ascii if ascii else encode_basestring
    colon, comma = (":", ",") if compact else (": ", ", ")
    encode = make_encoder({}, _refused, quoted, None, colon, comma, False, False, True)
    return "".join(encode(value, 0))


def _refused(value: object) -> None:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
