"""Operators on texts: literals, the plain parts of f-strings, and format specifications."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mngr_mechanic.program.scope import Scope, near
from mngr_mechanic.program.source import Edit, SourceFile

SEPARATORS = ("", " ", ", ", ",", "\n", "\t", ": ", ":", ";", "-", "_", "/", ".", "|", " - ")
MODES = ("r", "w", "a", "rb", "wb", "x")
PREFIX = re.compile(r"^([A-Za-z]*)('''|\"\"\"|'|\")")
QUOTED = r"'[^']*'|\"[^\"]*\""
INNER = rf"[\[({{](?:{QUOTED}|[^\[\](){{}}'\"])*[\])}}]"
"""Brackets without others inside."""
NESTED = rf"[\[({{](?:{QUOTED}|{INNER}|[^\[\](){{}}'\"])*[\])}}]"
FIELD = re.compile(
    rf"\{{\{{|\}}\}}|(?P<field>\{{(?:{QUOTED}|{NESTED}|!=|[^\[\](){{}}'\"!:])+"
    r"(?P<conversion>![rsa])?(?::(?P<spec>(?:[^{}]|\{[^{}]*\})*))?\})"
)
"""A field of an f-string, `{value!r:>10}`; without a group, a brace that is written twice."""
SPEC = re.compile(r"^(.?[<>^=])?([+\- ])?(#)?(0)?(\d+)?([,_])?(\.\d+)?([a-zA-Z%])?$")


def texts(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if scope.source.is_docstring(node) or scope.source.in_fstring(node):
            return
        for new, prior, hinted in _other_texts(scope, node.value):
            options = [written(scope.source, node, new)]
            yield from scope.edits(node, options, "text", prior, hinted=hinted)
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
    start, raw = scope.source.span(node)[0], scope.source.segment(node)
    for kind, begin, stop in parts(raw):
        span = (start + begin, start + stop)
        if kind == "text":
            yield from _plain_part(scope, node, span)
        elif kind == "spec":
            yield from scope.edits(node, specs(raw[begin:stop]), "format", 0.35, span=span)
        elif kind == "conversion":
            yield from scope.edits(node, [""], "format", 0.3, span=span)


def parts(raw: str) -> Iterator[tuple[str, int, int]]:
    """Yield (text | spec | conversion, start, end) in the source of an f-string.

    Literals side by side are one text: an edit that breaks a quote between them does not parse.
    """
    opening = PREFIX.match(raw)
    if opening is None:
        return
    begin, stop = opening.end(), len(raw) - len(opening.group(2))
    for found in FIELD.finditer(raw, begin, stop):
        if found.lastgroup is None:
            continue
        if begin < found.start():
            yield "text", begin, found.start()
        for kind in ("conversion", "spec"):
            if found[kind] is not None:
                yield (kind, *found.span(kind))
        begin = found.end()
    if begin < stop:
        yield "text", begin, stop


def _plain_part(scope: Scope, node: ast.AST, span: tuple[int, int]) -> Iterator[Edit]:
    raw = scope.source.text[span[0] : span[1]]
    for at, (wrong, right) in enumerate(scope.hints.changes):
        old, new = (_escaped(each) for each in (wrong, right))
        if old and old in raw and len(old) >= 2:
            options = [raw.replace(old, new, 1)]
            yield from scope.edits(node, options, "text", 0.95 * 0.985**at, hinted=True, span=span)
    options = [raw + "\\n", raw.replace("\\n", ""), raw.strip(), raw + " ", " " + raw]
    yield from scope.edits(node, options, "text", 0.15, span=span)
    for found in re.finditer(r"[^\w\s\\{}'\"]", raw):
        options = [raw[: found.start()] + sign + raw[found.end() :] for sign in "#-+/=.,:;|"]
        yield from scope.edits(node, options, "text", 0.15, 0.95, span=span)


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
