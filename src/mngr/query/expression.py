"""Parse a filter expression into a function that tests a row.

Each part is then tried on a sample row, so that a wrong type is found before any row is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from mngr.errors import UsageError, shorten, suggestion
from mngr.model.struct import Json
from mngr.query import Fields, Row, select, values

Value = Callable[[Row], object]
Test = Callable[[Row], bool]
MAX_LENGTH = 100_000  # a list of 2,000 ids fits
MAX_DEPTH = 50  # of brackets and `!`; Python's own stack holds the parser and its caller

_WORDS = r"""\s*(?:
    (?P<json> -?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?![\w.]) | (?:true|false|null)\b )
  | (?P<text> r"[^"\n]*" | r'[^'\n]*' | "[^"\\\n]*" | '[^'\\\n]*' )
  | (?P<op>   && | \|\| | [=!<>]= | [-!<>,()\[\]] | in\b )
  | (?P<call> \.?[A-Za-z_]\w*\( )
  | (?P<key>  \.[A-Za-z_]\w* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<end>  \Z )
  | (?P<bad>  [0-9][\w.]* | . )
)"""
_DASH = 'labels["a-b"] for a key with a dash, and now - … for times'
_QUOTES = "the same quote at both ends, and r'…' for text with a backslash"
_INSTEAD = {"=": "==", "&": "&&", "and": "&&", "|": "||", "or": "||", "not": "!"}
_INSTEAD |= {"-": _DASH, '"': _QUOTES, "'": _QUOTES}
# Text may be a time.
_SAMPLES: Row = {"any": None, "bool": True, "double": 1, "int": 1, "list": [], "string": "19700101"}


def words(expression: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the position of each word; the last one is an `end`."""
    for found in re.compile(_WORDS, re.VERBOSE | re.DOTALL | re.ASCII).finditer(expression):
        kind = found.lastgroup or ""
        yield kind, found[kind], found.start(kind)


class Expression:
    """A recursive descent over the words of one expression, one word ahead."""

    def __init__(self, text: str, fields: Fields, where: str, clock: Callable[[], float]) -> None:
        if len(text) > MAX_LENGTH:
            raise UsageError(f"expression longer than {MAX_LENGTH:,} characters in {where}")
        self.fields, self.where, self.clock = fields, where, clock
        self.words, self.depth = words(text), 0
        self.kind, self.word, self.at = next(self.words)
        self.sample: dict[str, Json] = {}
        self.parts: list[Value] = []

    def parse(self) -> Test:
        test = self.tested(self.either())
        if self.kind != "end":
            raise self.unexpected()
        for part in self.parts:
            part(self.sample)
        return test

    def advance(self) -> str:
        word = self.word
        self.kind, self.word, self.at = next(self.words)
        return word

    def take(self, *words: str) -> str:
        """Consume the next word if it is one of these, and return it; else return ""."""
        return self.advance() if self.word in words else ""

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.unexpected(f"expected '{word}', found")

    def unexpected(self, fault: str = "unexpected") -> UsageError:
        found = shorten(repr(self.word)) if self.word else "the end"
        hint = f"use {_INSTEAD[self.word]}" if self.word in _INSTEAD else ""
        return UsageError(f"{fault} {found} {self.place()}", hint)

    def place(self) -> str:
        return f"at character {self.at + 1} of {self.where}"

    # grammar, loosest first

    def either(self) -> Value:
        return self.joined("||", lambda: self.joined("&&", self.comparison))

    def joined(self, op: str, part: Callable[[], Value]) -> Value:
        parts = [part()]
        while self.take(op):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return _logic([self.tested(each) for each in parts], settled=op == "||")

    def comparison(self) -> Value:
        left, place, op = self.operand(), self.place(), self.take(*values.RELATIONS)
        if not op:
            return left
        right = self.operand()
        if op in ("==", "!="):
            self.applied(place, values.require_one_kind, left, right)
        return self.applied(place, values.RELATIONS[op], left, right)

    def operand(self) -> Value:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UsageError(f"brackets or ! nested more than {MAX_DEPTH} deep {self.place()}")
        value = self.negated() if self.take("!") else self.primary()
        place = self.place()
        if value == self.now and self.take("-"):
            value = self.applied(place, values.minus, value, self.primary())
        self.depth -= 1
        return value

    def negated(self) -> Value:
        test = self.tested(self.operand())
        return lambda row: not test(row)

    def primary(self) -> Value:
        if self.take("("):
            value = self.either()
            self.expect(")")
        elif self.kind == "call":
            value = self.call()
        elif self.kind == "name":
            value = self.field()
        else:
            value = _constant(self.listed() if self.take("[") else self.literal())
        return self.call(value) if self.kind == "call" else value

    def listed(self) -> list[Json]:
        items: list[Json] = []
        while not self.take("]"):
            items.append(self.literal())
            if self.word != "]":
                self.expect(",")
        return items

    def literal(self) -> Json:
        if self.kind == "json":
            return json.loads(self.advance())  # type: ignore[no-any-return]
        return self.text("a value")

    def text(self, wanted: str = "text in quotes") -> str:
        if self.kind != "text":
            raise self.unexpected(f"expected {wanted}, found")
        return self.advance().removeprefix("r")[1:-1]

    def field(self) -> Value:
        """Parse `now`, `labels.team` or `labels["a-b"]`."""
        if self.kind != "name" or self.word in _INSTEAD:
            raise self.unexpected("expected a field, found")
        place, path = self.place(), self.advance()
        while self.kind == "key" or self.word == "[":
            if self.take("["):
                path += f".{self.text()}"
                self.expect("]")
            else:
                path += self.advance()
        if path == "now" and path not in self.fields.kinds:
            return self.now
        kind = self.fields.find(path, place, f'write "{shorten(path)}" with quotes if it is text')
        self.sample[path] = _SAMPLES.get(kind, {}) if isinstance(kind, str) else {}
        return lambda row: select(row, path)

    def call(self, subject: Value | None = None) -> Value:
        """Parse `has(field)`, `duration("…")`, or `.contains("…")` after a subject."""
        place, name = self.place(), self.advance()[:-1]
        function = values.FUNCTIONS.get(name)
        if function is None or (name[0] == ".") is (subject is None):
            hint = suggestion(name, values.FUNCTIONS, f"there are {', '.join(values.FUNCTIONS)}")
            raise UsageError(f"unknown function {shorten(repr(name))} {place}", hint)
        argument = self.field() if name == "has" else _constant(self.text())
        self.expect(")")
        return self.applied(place, function, subject or argument, argument)

    def now(self, row: Row) -> values.Timestamp:
        return values.Timestamp(self.clock())

    def tested(self, value: Value) -> Test:
        """Return a value as a test, which is true or false."""

        def test(row: Row) -> bool:
            found = value(row)
            if found is None or isinstance(found, bool):
                return found is True
            fault = f"expected true or false, found {values.kind_of(found)} in {self.where}"
            raise UsageError(fault, "compare it with something")

        self.parts.append(test)
        return test

    def applied(self, place: str, function: values.Function, left: Value, right: Value) -> Value:
        """Return the value of a function of two values."""

        def value(row: Row) -> object:
            one, other = left(row), right(row)
            try:
                return function(one, other)
            except UsageError as error:
                raise UsageError(f"{error.message} {place}", error.hint) from None
            except RecursionError:
                raise UsageError(f"data nested too deeply to compare {place}") from None

        self.parts.append(value)
        return value


def _constant(value: object) -> Value:
    return lambda row: value


def _logic(tests: list[Test], settled: bool) -> Test:
    """Apply `&&` or `||`; as in CEL, an error in one test is ignored if another one decides."""

    def test(row: Row) -> bool:
        first: UsageError | None = None
        for each in tests:
            try:
                if each(row) is settled:
                    return settled
            except UsageError as error:
                first = first or error
        if first:
            raise first
        return not settled

    return test
