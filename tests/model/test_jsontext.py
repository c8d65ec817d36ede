"""JSON without the json module reads and writes what that module does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.model import jsontext

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
torn = st.tuples(values.map(json.dumps), st.integers(0, 60)).map(lambda pair: pair[0][: pair[1]])


def result(call: Callable[[], Any]) -> tuple[str, str]:
    try:
        return "", repr(call())
    except (ValueError, RecursionError, TypeError) as error:
        return type(error).__name__, str(error)


@given(values, st.booleans(), st.booleans())
def test_it_writes_what_the_json_module_writes(value: Any, ascii: bool, compact: bool) -> None:
    marks = (",", ":") if compact else (", ", ": ")
    expected = json.dumps(value, ensure_ascii=ascii, separators=marks)
    assert jsontext.dumps(value, ascii=ascii, compact=compact) == expected


@given(values.map(json.dumps) | torn | st.text() | st.text('[]{}",:0e- \n\\un'))
def test_it_reads_what_the_json_module_reads_and_fails_as_it_does(text: str) -> None:
    assert result(lambda: jsontext.loads(text)) == result(lambda: json.loads(text))


@given(values.map(json.dumps).map(str.encode) | torn.map(str.encode) | st.binary(max_size=20))
def test_bytes_are_read_as_by_the_json_module(data: bytes) -> None:
    assert result(lambda: jsontext.loads(data)) == result(lambda: json.loads(data))


@pytest.mark.parametrize("value", [{1}, object(), {(1, 2): 3}], ids=["set", "object", "key"])
def test_a_value_that_is_not_json_is_refused_as_by_the_json_module(value: Any) -> None:
    assert result(lambda: jsontext.dumps(value)) == result(lambda: json.dumps(value))


@pytest.mark.parametrize(
    "text", ['{"a"', "", "[1,", '"abc', "nul", '["\x01"]', "1 2", "[" * 99_999]
)
def test_torn_text_is_an_error_even_if_the_json_module_was_never_imported(text: str) -> None:
    script = (
        "import sys; from mngr.model import jsontext; assert 'json' not in sys.modules\n"
        "try: jsontext.loads(sys.stdin.read())\n"
        "except (ValueError, RecursionError): print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"
