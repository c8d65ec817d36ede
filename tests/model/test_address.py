from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.model.address import is_agent_id, is_name, parse_address

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
AGENT_ID = re.compile(r"agent-[0-9a-f]{32}")
names = st.from_regex(NAME, fullmatch=True)
hosts = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "name", "host", "provider", "path", "new_host"),
    [
        ("foo", "foo", "", "", None, False),
        ("foo@box", "foo", "box", "", None, False),
        ("foo@box.docker", "foo", "box", "docker", None, False),
        ("foo@.modal", "foo", "", "modal", None, True),
        ("@box", "", "box", "", None, False),
        ("foo:src/x.py", "foo", "", "", "src/x.py", False),
        ("foo@a.b.ssh:/x:y", "foo", "a.b", "ssh", "/x:y", False),
    ],
)
def test_an_address_has_these_parts(
    text: str, name: str, host: str, provider: str, path: str | None, new_host: bool
) -> None:
    address = parse_address(text)
    assert (address.name, address.host, address.provider) == (name, host, provider)
    assert (address.path, address.new_host) == (path, new_host)


@given(names, hosts | st.just(""), hosts | st.just(""), st.none() | st.text(max_size=20))
def test_an_address_survives_the_round_trip(
    name: str, host: str, provider: str, path: str | None
) -> None:
    where = f"@{host}" + (f".{provider}" if provider else "") if host or provider else ""
    text = name + where + ("" if path is None else f":{path}")
    assert str(parse_address(text)) == text


@given(st.text("aZ9_-. é\n", max_size=4) | st.text() | st.integers(61, 65).map("a".__mul__))
def test_a_name_is_what_its_pattern_says(text: str) -> None:
    assert is_name(text) == bool(NAME.fullmatch(text))


@given(
    st.from_regex(AGENT_ID)
    | st.text("0fgA-", min_size=31, max_size=33).map("agent-".__add__)
    | st.integers(36, 40).map(lambda length: "agent-".ljust(length, "0"))
    | st.sampled_from(["0" * 32, "0" * 38])
)
def test_an_agent_id_is_what_its_pattern_says(text: str) -> None:
    assert is_agent_id(text) == bool(AGENT_ID.fullmatch(text))


def test_an_address_that_ends_before_its_host_is_refused_with_its_form() -> None:
    with pytest.raises(UsageError, match="no host after '@'"):
        parse_address("foo@")


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_a_usage_error(text: str) -> None:
    try:
        address = parse_address(text)
    except UsageError:
        return
    assert not address.name or NAME.fullmatch(address.name)


@pytest.mark.parametrize("name", ["-x", "a b", "a;b", "$(id)", "é", "a" * 64, "a\n", ".", "_x"])
def test_a_hostile_name_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits"):
        parse_address(name)
