"""Operators on texts: literals, the plain parts of f-strings, and format specifications."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator

from mngr_mechanic.program.scope import Scope, near
from mngr_mechanic.program.source import Edit, SourceFile

SEPARATORS = ("", " ", ", ", ",", "\n", "\t", ": ", ":", ";", "-", "_", "/", ".", "|", " - ")
FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
FSTRING_END = getattr(tokenize, "FSTRING_END", -1)
MODES = ("r", "w", "a", "rb", "wb", "x")
PREFIX = re.compile(r"^([A-Za-z]*)('''|\"\"\"|'|\")")
SPEC = re.compile(r"^(.?[<>^=])?([+\- ])?(#)?(0)?(\d+)?([,_])?(\.\d+)?([a-zA-Z%])?$")


def texts(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if scope.source.is_docstring(node) or scope.source.in_fstring(node):
            return
        for new, prior, hinted in _other_texts(scope, node.value):
            yield from scope.replace(node, written(scope.source, node, new), "text", prior, hinted)
    elif isinstance(node, ast.JoinedStr) and not scope.source.in_fstring(node):
        yield from _fstring(scope, node)


def written(source: SourceFile, node: ast.AST, value: str) -> str:
    """Return the literal for a value, in the quotes of the node."""
    text = repr(value)
    first = PREFIX.match(source.segment(node))
    if first and first.group(2) == '"' and '"' not in value and "\\'" not in text:
        return '"' + text[1:-1] + '"'
    return text


def _other_texts(scope: Scope, value: str) -> Iterator[tuple[str, float, bool]]:
    """Yield each new text with its prior and whether the failure suggests it."""
    seen = {value}
    for new, prior, hinted in _suggestions(scope, value):
        if new not in seen:
            seen.add(new)
            # A documented word is not changed into an unknown one: the other place is misspelt.
            known = scope.hints.documented
            worse = value in known and new.isidentifier() and new not in known
            yield (new, prior * 0.1, False) if worse else (new, prior, hinted)


def _suggestions(scope: Scope, value: str) -> Iterator[tuple[str, float, bool]]:
    hints = scope.hints
    for at, (wrong, right) in enumerate(hints.changes):
        if wrong in value and len(wrong) >= 2:
            yield value.replace(wrong, right, 1), 0.95 * 0.985**at, True
        elif wrong and wrong == value:
            yield right, 0.8, True
    for word in near(value, hints.asked, 0.6):
        yield word, 0.98, True
    for word in near(value, hints.words):
        # A similar word of the test: likelier still if this text occurs only once.
        yield word, 0.5 if scope.words.texts[value] > 1 else 0.85, True
    for word in near(value, [*scope.words.texts, *scope.words.names]):
        yield word, 0.6 if scope.words.texts[value] <= 1 else 0.3, scope.words.texts[value] <= 1
    if value in SEPARATORS:
        for at, new in enumerate(SEPARATORS):
            yield new, 0.35 * 0.95**at, False
    if value in MODES:
        for new in MODES:
            yield new, 0.3, False
    for new in (value + "\n", value.rstrip("\n"), value.strip(), value + " ", " " + value):
        yield new, 0.15, False
    for new in (value.lower(), value.upper(), value.capitalize()):
        yield new, 0.2, False
    if re.fullmatch(r"[^\w\s]{1,2}", value):
        for at, new in enumerate("#-+*/=<>.,:;!?%&|@$~^[](){}"):
            yield new, 0.25 * 0.95**at, False
    yield from _patterns(value)
    yield from _same_kind(scope, value)


REGULAR = r"+>* *>+ \d>\w \w>\d \s>\S ?>* ^> $> 0-9>1-9 1-9>0-9 a-y>a-z b-z>a-z *>? +>?"
FORMATS = "%d>%s %s>%d %Y>%y %y>%Y %m>%M %M>%m %H>%I %I>%H %s>%r %r>%s"
"""old>new: one sign of a regular expression, and of a percent format."""


def _patterns(value: str) -> Iterator[tuple[str, float, bool]]:
    if "\\" in value or re.search(r"[\[(].*[\])]|[+*?]$", value):
        for old, _, new in (each.partition(">") for each in REGULAR.split()):
            for found in re.finditer(re.escape(old), value):
                yield value[: found.start()] + new + value[found.end() :], 0.2, False
    for old, _, new in (each.partition(">") for each in FORMATS.split()):
        if old in value:
            yield value.replace(old, new, 1), 0.25, False


def _same_kind(scope: Scope, value: str) -> Iterator[tuple[str, float, bool]]:
    """Yield other texts of the project that look like this one: keys, options, endings."""
    shape = _shape(value)
    same = [text for text, _ in scope.words.texts.most_common(400) if _shape(text) == shape]
    ordered = sorted(
        same, key=lambda text: (text not in scope.hints.words, abs(len(text) - len(value)))
    )
    missing = f"KeyError: {value!r}" in scope.hints.message
    for at, text in enumerate(ordered[:10]):
        yield text, (0.6 if missing else 0.2) * 0.9**at, missing


def _shape(text: str) -> str:
    if text.startswith("-"):
        return "option"
    if text.isidentifier():
        return "word"
    return "letters" if any(each.isalpha() for each in text) else f"signs{len(text) > 2}"


# f-strings


def _fstring(scope: Scope, node: ast.JoinedStr) -> Iterator[Edit]:
    start, end = scope.source.span(node)
    for token in _string_pieces(scope, start, end):
        raw = scope.source.text[token[0] : token[1]]
        for kind, begin, stop in parts(raw):
            span = (token[0] + begin, token[0] + stop)
            if kind == "text":
                yield from _plain_part(scope, node, span)
            elif kind == "spec":
                for new in specs(raw[begin:stop]):
                    yield from scope.edit(node, span, new, "format", 0.35)
            elif kind == "conversion":
                yield from scope.edit(node, span, "", "format", 0.3)


def _string_pieces(scope: Scope, start: int, end: int) -> list[tuple[int, int]]:
    """Return the places of the literals that stand side by side.

    Until Python 3.11 each is one token; later an f-string is many, from a start to its end.
    """
    pieces: list[tuple[int, int]] = []
    depth, begin = 0, start
    for token in scope.source.tokens_between(start, end):
        if token.type == FSTRING_START:
            begin = token.start if depth == 0 else begin
            depth += 1
        elif token.type == FSTRING_END:
            depth -= 1
            pieces += [(begin, token.end)] if depth == 0 else []
        elif token.type == tokenize.STRING and depth == 0:
            pieces.append((token.start, token.end))
    return pieces


def parts(raw: str) -> Iterator[tuple[str, int, int]]:
    """Yield (text | spec | conversion, start, end) in the source of one f-string."""
    opening = PREFIX.match(raw)
    if opening is None:
        return
    at, stop = opening.end(), len(raw) - len(opening.group(2))
    if "f" not in opening.group(1).lower():
        yield "text", at, stop
        return
    begin = at
    while at < stop:
        if raw.startswith(("{{", "}}"), at):
            at += 2
        elif raw[at] == "{":
            if begin < at:
                yield "text", begin, at
            close = _closing(raw, at, stop)
            yield from _field(raw, at + 1, close)
            at = begin = close + 1
        else:
            at += 1
    if begin < stop:
        yield "text", begin, stop


def _outside_quotes(raw: str, start: int, end: int) -> Iterator[tuple[int, str, int]]:
    """Yield the place of each sign, the sign, and how deep in brackets it is."""
    depth, quote = 0, ""
    for here in range(start, end):
        sign = raw[here]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            depth += (sign in "{[(") - (sign in "}])")
            yield here, sign, depth


def _closing(raw: str, at: int, stop: int) -> int:
    signs = _outside_quotes(raw, at, stop)
    return next((here for here, sign, depth in signs if sign in "}])" and depth == 0), stop)


def _field(raw: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the parts inside the braces: `value!r:>10`."""
    for here, sign, depth in _outside_quotes(raw, start, end):
        if depth == 0 and sign == "!" and raw[here + 1 : here + 2] in ("r", "s", "a"):
            yield "conversion", here, here + 2
        elif depth == 0 and sign == ":":
            yield "spec", here + 1, end
            return


def _plain_part(scope: Scope, node: ast.AST, span: tuple[int, int]) -> Iterator[Edit]:
    raw = scope.source.text[span[0] : span[1]]
    for at, (wrong, right) in enumerate(scope.hints.changes):
        old, new = (_escaped(each) for each in (wrong, right))
        if old and old in raw and len(old) >= 2:
            text = raw.replace(old, new, 1)
            yield from scope.edit(node, span, text, "text", 0.95 * 0.985**at, True)
    for new in (raw + "\\n", raw.replace("\\n", ""), raw.strip(), raw + " ", " " + raw):
        yield from scope.edit(node, span, new, "text", 0.15)
    for found in re.finditer(r"[^\w\s\\{}'\"]", raw):
        for at, sign in enumerate("#-+/=.,:;|"):
            new = raw[: found.start()] + sign + raw[found.end() :]
            yield from scope.edit(node, span, new, "text", 0.15 * 0.95**at)


def _escaped(text: str) -> str:
    return repr(text)[1:-1].replace("{", "{{").replace("}", "}}")


def specs(spec: str) -> list[str]:
    """Return format specifications that differ in one sign."""
    found = SPEC.match(spec)
    if found is None:
        turned = (("<", ">"), (">", "<"), ("^", "<"))
        return [spec.replace(old, new, 1) for old, new in turned if old in spec]
    align, _, _, zero, width, comma, precision, kind = found.groups()
    new: list[str] = []
    if align:
        new += [spec.replace(align[-1], sign, 1) for sign in "<>^"]
    before, after = spec[: found.start(5)], spec[found.end(5) :]
    if width:
        new += [f"{before}{number}{after}" for number in _beside(width)]
    if precision:
        new += [spec.replace(precision, f".{number}", 1) for number in _beside(precision[1:])]
    if width and not zero:
        new.append(f"{before}0{width}{after}")
    if zero:
        new.append(spec[: found.start(4)] + spec[found.end(4) :])
    if kind:
        new += [spec[:-1] + other for other in "dfsgxeX%"]
    if comma:
        new.append(spec.replace(comma, "", 1))
    return [each for each in new if each != spec]


def _beside(number: str) -> list[int]:
    return [each for each in (int(number) + 1, int(number) - 1) if each >= 0]
