"""Claims about JSON: equality, inclusion, a path into it, a small schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from mngr_e2e.expect.matchers import ClaimCheck, Json, JsonLike, brief, diff, plural, pretty, shown


def is_json(text: str) -> ClaimCheck:
    try:
        json.loads(text)
    except ValueError as error:
        return ClaimCheck(False, "to be JSON", f"{error}: {shown(text)}")
    return ClaimCheck(True, "to be JSON")


def same_json(value: Json, expected: JsonLike) -> ClaimCheck:
    wanted = cast("Json", expected)
    holds = _same(value, wanted)
    detail = "" if holds else diff(pretty(wanted), pretty(value))
    return ClaimCheck(holds, f"to equal {brief(wanted)}", detail)


def includes_json(value: Json, expected: JsonLike) -> ClaimCheck:
    """Check that every key of `expected` is there, and of a list every item, in order."""
    wanted = cast("Json", expected)
    missing = next(_missing(value, wanted, "$"), "")
    return ClaimCheck(not missing, f"to include {brief(wanted)}", missing)


def matches_schema(value: Json, schema: Mapping[str, object]) -> ClaimCheck:
    problems = list(_violations(value, cast("Mapping[str, Json]", schema), "$"))
    return ClaimCheck(not problems, "to match the schema", "\n".join(problems))


def at(value: Json, path: str) -> Json:
    """Return the value at `a.b[0]`, or `["a.b"]` for a key with dots; raise LookupError."""
    here = "$"
    for step in steps(path):
        name = f"{here}[{step}]" if isinstance(step, int) else f"{here}.{step}"
        if isinstance(step, int) and isinstance(value, list | tuple):
            if not -len(value) <= step < len(value):
                raise LookupError(f"there is no {name}: {here} has {plural(len(value), 'item')}")
            value = value[step]
        elif isinstance(step, str) and isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            raise LookupError(f"there is no {name}: {here} is {brief(value)}")
        here = name
    return value


_STEP = re.compile(r"""\.?(?P<key>[^.\[\]"]+)|\[(?P<index>-?[0-9]+)\]|\[(?P<quoted>"[^"]*")\]""")


def steps(path: str) -> list[str | int]:
    """Return the keys and indices of a path."""
    found: list[str | int] = []
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"not a path: {path!r} at {path[position:]!r}; write a.b[0]")
        key, index, quoted = step.group("key", "index", "quoted")
        found.append(int(index) if index else key or quoted[1:-1])
        position = step.end()
    return found


def _same(one: Json, other: Json) -> bool:
    """Compare as JSON does: `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _missing(value: Json, wanted: Json, where: str) -> Iterator[str]:
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        for key, inner in wanted.items():
            if key not in value:
                yield f"there is no {where}.{key}: {where} is {brief(value)}"
            else:
                yield from _missing(value[key], inner, f"{where}.{key}")
    elif isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
        rest = iter(value)  # an iterator, because the order counts
        for number, item in enumerate(wanted):
            if not any(next(_missing(each, item, ""), None) is None for each in rest):
                yield f"{where} has no item, in order, for [{number}]: {brief(item)}"
    elif not _same(value, wanted):
        yield f"{where} is {brief(value)}, not {brief(wanted)}"


_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list, tuple),
    "object": (dict,),
}
_KEYWORDS = {"type", "required", "properties", "items", "enum", "title", "description"}


def _violations(value: Json, schema: Mapping[str, Json], where: str) -> Iterator[str]:
    """Yield violations of a subset of JSON Schema; raise ValueError for other keywords."""
    if unknown := sorted(schema.keys() - _KEYWORDS):
        raise ValueError(f"unknown schema keyword {unknown[0]!r}; known: {sorted(_KEYWORDS)}")
    types = schema.get("type", [])
    names = [types] if isinstance(types, str) else _items(types)
    if names and not any(_is_type(value, str(name)) for name in names):
        yield f"{where} is {brief(value)}, not of type {' or '.join(map(str, names))}"
        return
    if "enum" in schema and not any(_same(value, each) for each in _items(schema["enum"])):
        yield f"{where} is {brief(value)}, not one of {brief(schema['enum'])}"
    if isinstance(value, Mapping):
        yield from _object_violations(value, schema, where)
    elif isinstance(value, list | tuple) and isinstance(inner := schema.get("items"), Mapping):
        for number, item in enumerate(value):
            yield from _violations(item, inner, f"{where}[{number}]")


def _object_violations(
    value: Mapping[str, Json], schema: Mapping[str, Json], where: str
) -> Iterator[str]:
    for key in _items(schema.get("required", [])):
        if key not in value:
            yield f"there is no {where}.{key}"
    properties = schema.get("properties", {})
    assert isinstance(properties, Mapping), "a schema's `properties` is an object"
    for key, inner in properties.items():
        assert isinstance(inner, Mapping), f"the schema of {key!r} is not an object"
        if key in value:
            yield from _violations(value[key], inner, f"{where}.{key}")


def _is_type(value: Json, name: str) -> bool:
    if name not in _TYPES:
        raise ValueError(f"unknown schema type {name!r}; known: {', '.join(_TYPES)}")
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


def _items(value: Json) -> Sequence[Json]:
    assert isinstance(value, list | tuple), f"expected a list, not {value!r}"
    return value
