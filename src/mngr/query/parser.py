"""Parse a filter expression into nested functions from a row to a value.

Names are checked while parsing. Types are checked by running the finished expression on a sample
row, so a mistake is found before any row is read.
"""

from __future__ import annotations

from mngr.errors import nearest
from mngr.query import evaluate, words
from mngr.query.evaluate import Sample, constant, truth
from mngr.query.fields import Fields, inside, shorten
from mngr.query.values import Timestamp, parse_duration, parse_timestamp
from mngr.query.words import BadExpression, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr.model.struct import Json
    from mngr.query.evaluate import Value
    from mngr.query.fields import Kind

MAX_DEPTH = 50  # of brackets; Python's own stack holds the parser and its caller
MAX_WORDS = 500  # of one sum

_RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_FUNCTIONS = (*evaluate.TESTS, "has", "timestamp", "duration")


class Expression:
    """A recursive descent over the words of one expression."""

    def __init__(self, text: str, fields: Fields, clock: Callable[[], float]) -> None:
        self.words = words.split(text)
        self.next = 0
        self.depth = 0
        self.fields = fields
        self.clock = clock

    def test(self) -> Value:
        """Parse the whole expression and try it on a sample."""
        value = self.either()
        if self.word.kind != "end":
            raise self.surprise()
        truth(value(Sample(self.fields.kinds)))
        return value

    # words

    @property
    def word(self) -> Word:
        return self.words[self.next]

    def advance(self) -> Word:
        self.next += 1
        return self.words[self.next - 1]

    def take(self, *texts: str) -> Word | None:
        """Consume the next word if it is one of these operators or names."""
        found = self.word.text in texts and self.word.kind in ("op", "name")
        return self.advance() if found else None

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.surprise(f"expected '{text}', found ")

    def quoted(self, function: str) -> str:
        """Consume text in quotes and the bracket that ends a call."""
        if self.word.kind != "text":
            raise BadExpression(f"{function}() takes text in quotes", self.word.at)
        word = self.advance()
        self.expect(")")
        return words.text(word)

    def surprise(self, before: str = "unexpected ") -> BadExpression:
        word = self.word
        found = shorten(repr(word.text)) if word.kind != "end" else "the end"
        hint = {"and": "use && for and", "or": "use || for or", "not": "use ! for not"}
        return BadExpression(before + found, word.at, hint.get(word.text, ""))

    # grammar, loosest first

    def either(self) -> Value:
        return self.joined("||", lambda: self.joined("&&", self.negated))

    def joined(self, op: str, operand: Callable[[], Value]) -> Value:
        parts = [operand()]
        while self.take(op):
            parts.append(operand())
        return evaluate.logic(parts, settled=op == "||") if len(parts) > 1 else parts[0]

    def negated(self) -> Value:
        count = 0
        while self.take("!"):
            count += 1
        value, same = self.relation(), count % 2 == 0
        return (lambda row: truth(value(row)) is same) if count else value

    def relation(self) -> Value:
        left = self.sum()
        word = self.take(*_RELATIONS)
        return evaluate.binary(word, left, self.sum()) if word else left

    def sum(self) -> Value:
        start, left = self.next, self.operand()
        while word := self.take("+", "-"):
            try:
                right = self.operand()
            except BadExpression as error:
                raise self.dashed(self.words[start : self.next], error) from None
            left = evaluate.binary(word, left, right)
            if self.next - start > MAX_WORDS:
                raise BadExpression("too many additions", word.at)
        return left

    def dashed(self, read: list[Word], error: BadExpression) -> BadExpression:
        """Return the error with a hint for `labels.a-b`, which is parsed as a subtraction."""
        if len(read) != 5 or [word.text for word in read[1::2]] != [".", "-"]:
            return error
        key = shorten(repr(f"{read[2].text}-{read[4].text}"))
        return BadExpression(error.message, error.at, f"a key with a dash is written [{key}]")

    def operand(self) -> Value:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise BadExpression(f"brackets nested more than {MAX_DEPTH} deep", self.word.at)
        value = self.primary()
        value = self.tested(value) if self.take(".") else value
        self.depth -= 1
        return value

    def primary(self) -> Value:
        word = self.advance()
        if word.kind == "number":
            return constant(words.number(word))
        if word.kind == "text":
            return constant(words.text(word))
        if word.kind == "name":
            return self.named(word)
        if word.text == "-" and self.word.kind == "number":
            return constant(-words.number(self.advance()))
        if word.text == "(":
            value = self.either()
            self.expect(")")
            return value
        if word.text == "[":
            return self.listed()
        self.next -= 1
        raise self.surprise("expected a value, found ")

    def listed(self) -> Value:
        items: list[Value] = []
        while not self.take("]"):
            items.append(self.sum())
            if not self.take(","):
                self.expect("]")
                break
        return lambda row: [item(row) for item in items]

    def named(self, word: Word) -> Value:
        if word.text in ("true", "false", "null"):
            return constant({"true": True, "false": False}.get(word.text))
        return self.call(word) if self.take("(") else self.field(word)

    def field(self, word: Word) -> Value:
        """Parse `labels.team` or `labels["a-b"]`, up to a test such as `.contains(`."""
        kind, keys = self.top(word.text), [word.text]
        while key := self.key():
            keys.append(key)
            kind = self.member(kind, keys)
        if kind == "now":
            return self.now
        return lambda row: evaluate.walk(row, keys)

    def now(self, row: Mapping[str, Json]) -> Timestamp:
        return Timestamp(0 if isinstance(row, Sample) else round(self.clock() * 1_000_000))

    def top(self, name: str) -> Kind:
        if name == "now" and name not in self.fields.kinds:
            return "now"
        if (kind := self.fields.kind(name)) is not None:
            return kind
        hint = self.fields.nearest(name) or f'write "{shorten(name)}" with quotes if it is text'
        raise _unknown(name, hint)

    def key(self) -> str:
        """Consume a key of a map, or nothing."""
        following = self.words[self.next : self.next + 3]
        shape = "".join(word.text if word.kind == "op" else word.kind for word in following)
        if shape.startswith(".name") and shape != ".name(":
            self.next += 2
            return following[1].text
        if shape == "[text]":
            self.next += 3
            return words.text(following[1])
        return ""

    def member(self, kind: Kind, keys: list[str]) -> Kind:
        found = inside(kind) if isinstance(kind, str) else kind.get(keys[-1])
        if found is None:
            path = ".".join(keys)
            # Columns may be called labels.a.b, where labels has a key `a.b`.
            flat = 'a key with dots is written ["a.b"]' if self.fields.kind(path) else ""
            raise _unknown(path, flat or self.fields.nearest(path))
        return found

    # functions

    def call(self, word: Word) -> Value:
        """Parse the rest of `has(…)`, `timestamp("…")` and `duration("…")`."""
        name = word.text
        if name == "has":
            if self.word.kind != "name":
                raise BadExpression("has() takes one field", word.at)
            value = self.field(self.advance())
            self.expect(")")
            return lambda row: value(row) is not None
        parse = {"timestamp": parse_timestamp, "duration": parse_duration}.get(name)
        if parse is None:
            raise _no_function(word)
        text = self.quoted(name)
        if (parsed := parse(text)) is None:
            raise BadExpression(f"{shorten(repr(text))} is not a {name}", word.at)
        return constant(parsed)

    def tested(self, subject: Value) -> Value:
        """Parse the rest of `x.contains(y)` and the like."""
        if self.word.kind != "name":
            raise self.surprise("expected a name, found ")
        word = self.advance()
        if word.text not in evaluate.TESTS:
            raise _no_function(word)
        self.expect("(")
        if word.text == "matches":
            argument = constant(evaluate.pattern(self.quoted("matches"), word.at))
        else:
            argument = self.sum()
            self.expect(")")
        return lambda row: evaluate.text_test(word, subject(row), argument(row))


def _unknown(name: str, hint: str) -> BadExpression:
    return BadExpression(f"unknown field {shorten(repr(name))}", hint=hint)


def _no_function(word: Word) -> BadExpression:
    close = nearest(word.text, _FUNCTIONS)
    hint = f"did you mean '{close}'?" if close else f"there are {', '.join(_FUNCTIONS)}"
    return BadExpression(f"unknown function '{shorten(word.text)}'", word.at, hint)
