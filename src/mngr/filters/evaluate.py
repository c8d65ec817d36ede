"""Turns a checked tree into nested functions, and runs them on rows."""

from __future__ import annotations

from mngr.filters.functions import FUNCTIONS
from mngr.filters.syntax import (
    Binary,
    Call,
    Choice,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Name,
    Node,
    Select,
    Unary,
    dotted,
)
from mngr.filters.values import Duration, Fault, Timestamp, arithmetic, equal, kind_of, order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from mngr.filters.fields import Fields
    from mngr.struct import Json

    Step: TypeAlias = Callable[["Scope"], object]

MAX_STEPS = 1_000_000  # rounds of all(), exists() and the like for one row


class Exhausted(Exception):
    """More rounds than any sensible filter needs; unlike a Fault, nothing absorbs it."""


class Scope:
    """One row, the time, and the names that macros bind."""

    __slots__ = ("bound", "clock", "row", "steps")

    def __init__(self, row: Mapping[str, Json], clock: Callable[[], float]) -> None:
        self.row = row
        self.clock = clock
        self.bound: dict[str, object] = {}
        self.steps = 0


def truth(value: object) -> bool:
    """A value where a test is needed: null counts as false, anything but a bool is a fault."""
    if value is None:
        return False
    if isinstance(value, bool):
        return value
    raise Fault(f"expected true or false, found {kind_of(value)}")


def build(node: Node, fields: Fields, bound: frozenset[str] = frozenset()) -> Step:
    """The function that computes a part; `bound` are the names of the macros around it."""

    def sub(part: Node) -> Step:
        return build(part, fields, bound)

    match node:
        case Literal(value=value):
            return lambda scope: value
        case Name(name=name):
            return _declared(node, _name(name, fields, bound), fields, bound)
        case Select(of=of, name=name):
            return _declared(node, _index(sub(of), lambda scope: name), fields, bound)
        case Index(of=of, key=key):
            return _index(sub(of), sub(key))
        case Has(of=of):
            inner = sub(of)
            return lambda scope: inner(scope) is not None
        case Call(name=name, args=args):
            return _call(name, [sub(arg) for arg in args])
        case Macro(over=over, body=body, variable=variable):
            return _macro(node, sub(over), build(body, fields, bound | {variable}))
        case Unary(op=op, of=of):
            return _unary(op, sub(of))
        case Binary(op=op, left=left, right=right):
            return _binary(op, sub(left), sub(right))
        case Logic(op=op, parts=parts):
            steps = [sub(part) for part in parts]
            return lambda scope: _settle(op == "||", steps, scope)
        case Choice(test=test, yes=yes, no=no):
            return _choice(sub(test), sub(yes), sub(no))
        case ListOf(items=items):
            return _list(items, [sub(item) for item in items])
    assert isinstance(node, MapOf), node
    return _map([(sub(key), sub(value)) for key, value in node.pairs])


def _declared(node: Node, step: Step, fields: Fields, bound: frozenset[str]) -> Step:
    """JSON writes 700.0 as 700 at times; a field of fractions must not divide like whole ones."""
    path = dotted(node)
    if path.partition(".")[0] in bound or fields.kind(path) != "double":
        return step

    def run(scope: Scope) -> object:
        value = step(scope)
        return float(value) if type(value) is int and abs(value) < 2**63 else value

    return run


def _name(name: str, fields: Fields, bound: frozenset[str]) -> Step:
    if name in bound:
        return lambda scope: scope.bound[name]
    if name == "now" and name not in fields.kinds:
        return lambda scope: Timestamp(int(scope.clock() * 1_000_000))
    return lambda scope: scope.row.get(name)


def _index(of: Step, key: Step) -> Step:
    def run(scope: Scope) -> object:
        value, at = of(scope), key(scope)
        if isinstance(value, dict):
            return value.get(at) if isinstance(at, str) else None
        if isinstance(value, (list, tuple)) and isinstance(at, int):
            return value[at] if 0 <= at < len(value) else None
        return None

    return run


def _call(name: str, args: list[Step]) -> Step:
    function = FUNCTIONS[name]
    return lambda scope: function([arg(scope) for arg in args])


def _unary(op: str, of: Step) -> Step:
    if op == "!":
        return lambda scope: not truth(of(scope))

    def negate(scope: Scope) -> object:
        value = of(scope)
        if isinstance(value, float):
            return -value  # subtracting from zero would lose the sign of a zero
        return arithmetic("-", Duration(0) if isinstance(value, Duration) else 0, value)

    return negate


def _binary(op: str, left: Step, right: Step) -> Step:
    if op == "==":
        return lambda scope: equal(left(scope), right(scope))
    if op == "!=":
        return lambda scope: not equal(left(scope), right(scope))
    if op == "in":
        return lambda scope: _contains(right(scope), left(scope))
    if op in ("<", "<=", ">", ">="):
        return lambda scope: order(op, left(scope), right(scope))
    return lambda scope: arithmetic(op, left(scope), right(scope))


def _contains(container: object, item: object) -> bool:
    if container is None:
        return False
    if isinstance(container, dict):
        return isinstance(item, str) and item in container
    if isinstance(container, (list, tuple)):
        # Text equals nothing but text, so the fast search is right for it.
        if isinstance(item, str):
            return item in container
        return any(equal(item, each) for each in container)
    raise Fault(f"'in' looks into a list or a map, not {kind_of(container)}")


def _settle(decisive: bool, parts: Iterable[Step], scope: Scope) -> bool:
    """`||` is settled by a true part and `&&` by a false one, whatever faults the others have."""
    fault: Fault | None = None
    for part in parts:
        try:
            if truth(part(scope)) is decisive:
                return decisive
        except Fault as error:
            fault = fault or error
    if fault is not None:
        raise fault
    return not decisive


def _choice(test: Step, yes: Step, no: Step) -> Step:
    return lambda scope: yes(scope) if truth(test(scope)) else no(scope)


def _list(items: tuple[Node, ...], steps: list[Step]) -> Step:
    if all(isinstance(item, Literal) for item in items):
        values = [item.value for item in items if isinstance(item, Literal)]
        return lambda scope: values
    return lambda scope: [step(scope) for step in steps]


def _map(pairs: list[tuple[Step, Step]]) -> Step:
    def run(scope: Scope) -> object:
        made = [(key(scope), value(scope)) for key, value in pairs]
        if not all(isinstance(key, str) for key, _ in made):
            raise Fault("the keys of a map must be text")
        return dict(made)

    return run


def _macro(node: Macro, over: Step, body: Step) -> Step:
    finish = _MACROS[node.name]

    def run(scope: Scope) -> object:
        items = _items(node.name, over(scope))
        if items is None:
            return None
        outer = scope.bound
        scope.bound = {**outer}
        try:
            return finish(_rounds(items, node.variable, scope), body, scope)
        finally:
            scope.bound = outer

    return run


def _items(macro: str, value: object) -> list[object] | None:
    """What a macro goes over: a list, or the keys of a map."""
    if value is None:
        return None
    if isinstance(value, (list, tuple, dict)):
        return list(value)
    raise Fault(f"{macro}() goes over a list or a map, not {kind_of(value)}")


def _rounds(items: list[object], variable: str, scope: Scope) -> Iterable[object]:
    """Each item in turn, bound to the macro's name while the round lasts."""
    for item in items:
        scope.steps += 1
        if scope.steps > MAX_STEPS:
            raise Exhausted(f"more than {MAX_STEPS:,} rounds for one row")
        scope.bound[variable] = item
        yield item


def _all(rounds: Iterable[object], body: Step, scope: Scope) -> object:
    return _settle(False, (body for _ in rounds), scope)


def _exists(rounds: Iterable[object], body: Step, scope: Scope) -> object:
    return _settle(True, (body for _ in rounds), scope)


def _exists_one(rounds: Iterable[object], body: Step, scope: Scope) -> object:
    return sum(truth(body(scope)) for _ in rounds) == 1


def _filter(rounds: Iterable[object], body: Step, scope: Scope) -> object:
    return [item for item in rounds if truth(body(scope))]


_MACROS = {"all": _all, "exists": _exists, "exists_one": _exists_one, "filter": _filter}
