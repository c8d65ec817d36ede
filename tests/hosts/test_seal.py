"""The seal of a remote call: however the output is cut, nothing is lost or added."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mngr.hosts.remote import Seal

NONCE = "0123456789abcdef"
BEGIN, END = f"\n{NONCE}\n".encode(), f"\n{NONCE} ".encode()
# Much of it looks like the beginning of a mark.
WORDS = st.lists(st.sampled_from([b"\n", NONCE[:7].encode(), b"x", END[:-2], BEGIN[:-1], b"\0"]))

SIZES = st.lists(st.integers(1, 20), max_size=30)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    found = []
    for size in sizes:
        found.append(data[:size])
        data = data[size:]
    return [each for each in (*found, data) if each]


@given(
    st.binary(max_size=30), WORDS, st.integers(0, 255), st.lists(st.integers(1, 20), max_size=30)
)
def test_what_lies_between_the_marks_is_passed_on(
    greeting: bytes, words: list[bytes], code: int, sizes: list[int]
) -> None:
    output = b"".join(words).replace(END, b"").replace(BEGIN, b"")
    got = bytearray()
    seal = Seal(NONCE, lambda stream, data: got.extend(data))
    sent = greeting + BEGIN + output + END + str(code).encode() + b"\nleft behind"
    for chunk in cut(sent, sizes):
        seal(1, chunk)
    assert bytes(got) == output
    assert seal.codes == {1: code}


@given(WORDS, SIZES)
def test_without_its_end_a_call_is_broken(words: list[bytes], sizes: list[int]) -> None:
    output = b"".join(words).replace(END, b"").replace(BEGIN, b"")
    got = bytearray()
    seal = Seal(NONCE, lambda stream, data: got.extend(data))
    for chunk in cut(BEGIN + output, sizes):
        seal(2, chunk)
    assert seal.broken
    assert bytes(got) + seal.complaint(b"", 255) == output


@given(st.binary(max_size=40).filter(lambda tail: not re.match(rb"\d{0,3}(\n|$)", tail)), SIZES)
def test_a_mark_without_a_code_is_output(tail: bytes, sizes: list[int]) -> None:
    got = bytearray()
    seal = Seal(NONCE, lambda stream, data: got.extend(data))
    for chunk in cut(BEGIN + END + tail + END + b"7\n", sizes):
        seal(1, chunk)
    assert (bytes(got), seal.codes) == (END + tail, {1: 7})
