"""Finds the mistakes in an expression before any row is read: names, arguments, types.

There is no second table of types: an operator is tried on a sample of each kind, so what is
refused here is exactly what would fail on a row.
"""

from __future__ import annotations

from mngr.errors import nearest
from mngr.filters.fields import inside, shorten
from mngr.filters.functions import FUNCTIONS, Function, compile_pattern
from mngr.filters.parser import MACROS
from mngr.filters.syntax import (
    BadExpression,
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
from mngr.filters.values import (
    Duration,
    Fault,
    Timestamp,
    arithmetic,
    kind_of,
    order,
    parse_timestamp,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.filters.fields import Fields, Kind

_SAMPLES: dict[str, object] = {
    "bool": True,
    "int": 1,
    "double": 1.0,
    "string": "1970-01-01",  # text passes for a moment where one is needed
    "list": [],
    "map": {},
    "timestamp": Timestamp(0),
    "duration": Duration(1),
}


def check(tree: Node, fields: Fields) -> None:
    """Raise BadExpression unless the expression is a test over these fields."""
    kind = _plain(_Checker(fields).kind(tree, frozenset()))
    if kind not in ("bool", "any"):
        hint = "compare it with something" if kind != "null" else ""
        raise BadExpression(f"the expression gives {kind}, not true or false", hint=hint)


def _plain(kind: Kind) -> str:
    """A kind as values know it."""
    if not isinstance(kind, str) or kind == "string map":
        return "map"
    return kind


class _Checker:
    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    def kind(self, node: Node, bound: frozenset[str]) -> Kind:
        """The kind of a part's value; `any` when only the row can tell."""
        try:
            return self._kind(node, bound)
        except Fault as fault:
            raise BadExpression(fault.message, node.at, fault.hint) from None

    def _kind(self, node: Node, bound: frozenset[str]) -> Kind:
        match node:
            case Literal(value=value):
                return kind_of(value)
            case Name(name=name):
                return self.name(name, bound)
            case Select(of=of, name=name):
                return self.member(node, self.kind(of, bound), name)
            case Index(of=of, key=Literal(value=str(name))):
                return self.member(node, self.kind(of, bound), name)
            case Index(of=of, key=key):
                return self.index(self.kind(of, bound), _plain(self.kind(key, bound)))
            case Has(of=of):
                self.kind(of, bound)
                return "bool"
            case Call():
                return self.call(node, bound)
            case Macro():
                return self.macro(node, bound)
            case Unary(op=op, of=of):
                return self.unary(op, _plain(self.kind(of, bound)))
            case Binary():
                return self.binary(node, bound)
            case Logic(op=op, parts=parts):
                for part in parts:
                    _require_test(f"'{op}'", _plain(self.kind(part, bound)))
                return "bool"
            case Choice(test=test, yes=yes, no=no):
                _require_test("'?'", _plain(self.kind(test, bound)))
                one, other = self.kind(yes, bound), self.kind(no, bound)
                return one if one == other else "any"
        return self.collection(node, bound)

    def collection(self, node: Node, bound: frozenset[str]) -> Kind:
        if isinstance(node, ListOf):
            for item in node.items:
                self.kind(item, bound)
            return "list"
        assert isinstance(node, MapOf), node
        for key, value in node.pairs:
            if _plain(self.kind(key, bound)) not in ("string", "any"):
                raise Fault("the keys of a map must be text")
            self.kind(value, bound)
        return "map"

    def name(self, name: str, bound: frozenset[str]) -> Kind:
        if name in bound:
            return "any"
        kind = self.fields.kind(name)
        if kind is not None and (name in self.fields.kinds or name != "now"):
            return kind
        if name == "now":
            return "timestamp"
        hint = self.fields.nearest(name) or f'write "{shorten(name)}" with quotes if it is text'
        raise _unknown(name, hint)

    def member(self, node: Node, kind: Kind, name: str) -> Kind:
        found = inside(kind) if isinstance(kind, str) else kind.get(name)
        if found is None:
            path = dotted(node)
            # Columns may be called labels.a.b, where labels has a key `a.b`.
            flat = 'a key with dots is written ["a.b"]' if self.fields.kind(path) else ""
            raise _unknown(path, flat or self.fields.nearest(path))
        return found

    def index(self, kind: Kind, key: str) -> Kind:
        plain = _plain(kind)
        if plain not in ("list", "map", "any", "null"):
            raise Fault(f"{plain} has no elements")
        if plain == "list" and key not in ("int", "any", "null"):
            raise Fault(f"a list is indexed by a number, not {key}")
        return "any"

    def call(self, node: Call, bound: frozenset[str]) -> Kind:
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise Fault(f"unknown function '{shorten(node.name)}'", _nearest_function(node.name))
        takes = function.takes
        if len(node.args) != len(takes):
            raise Fault(f"{node.name}() takes {len(takes)} values, not {len(node.args)}")
        for arg, accepted in zip(node.args, takes, strict=True):
            function.accept(_plain(self.kind(arg, bound)), accepted)
        _try_constants(function, node.args)
        return function.gives

    def macro(self, node: Macro, bound: frozenset[str]) -> Kind:
        over = _plain(self.kind(node.over, bound))
        if over not in ("list", "map", "any", "null"):
            raise Fault(f"{node.name}() goes over a list or a map, not {over}")
        body = _plain(self.kind(node.body, bound | {node.variable}))
        _require_test(f"{node.name}()", body)
        return "list" if node.name == "filter" else "bool"

    def unary(self, op: str, kind: str) -> Kind:
        if op == "!":
            _require_test("'!'", kind)
            return "bool"
        if kind not in ("int", "double", "duration", "any", "null"):
            raise Fault(f"cannot use '-' on {kind}")
        return kind

    def binary(self, node: Binary, bound: frozenset[str]) -> Kind:
        left = self.kind(node.left, bound)
        try:
            right = self.kind(node.right, bound)
        except BadExpression as error:
            raise _dashed(node, left, error) from None
        one, other = _plain(left), _plain(right)
        if node.op == "in":
            return _contained(one, other)
        if node.op in ("+", "-", "*", "/", "%"):
            return _result(node.op, one, other)
        _require_comparable(node, one, other)
        return "bool"


def _unknown(name: str, hint: str) -> BadExpression:
    return BadExpression(f"unknown field {shorten(repr(name))}", hint=hint)


def _nearest_function(name: str) -> str:
    if name in MACROS:
        return f"for example labels.{name}(key, key != 'x')"
    close = nearest(name, [*FUNCTIONS, *MACROS, "has"])
    return f"did you mean '{close}'?" if close else ""


def _try_constants(function: Function, args: tuple[Node, ...]) -> None:
    """What can be known to fail without a row: `timestamp("yesterday")`, a bad pattern."""
    values = [arg.value for arg in args if isinstance(arg, Literal)]
    if function.name == "matches" and isinstance(args[1], Literal):
        compile_pattern(str(args[1].value))
    elif len(values) == len(args) and None not in values and function(values) is None:
        raise Fault(f"{shorten(repr(values[0]))} is no {function.gives}")


def _require_test(what: str, kind: str) -> None:
    if kind not in ("bool", "any", "null"):
        raise Fault(f"{what} needs true or false, not {kind}")


def _contained(item: str, container: str) -> Kind:
    if container == "string":
        raise Fault("'in' looks into a list or a map, not string", "use contains()")
    if container not in ("list", "map", "any", "null"):
        raise Fault(f"'in' looks into a list or a map, not {container}")
    return "bool"


def _result(op: str, left: str, right: str) -> Kind:
    if left in ("any", "null") or right in ("any", "null"):
        return "any"
    return kind_of(arithmetic(op, _SAMPLES[left], _SAMPLES[right]))


def _require_comparable(node: Binary, left: str, right: str) -> None:
    if left in ("any", "null") or right in ("any", "null"):
        return
    if node.op not in ("==", "!=") or left != right:
        order(node.op if node.op[0] in "<>" else "<", _SAMPLES[left], _SAMPLES[right])
    if "timestamp" in (left, right):
        for side in (node.left, node.right):
            _require_moment(side)


def _require_moment(side: Node) -> None:
    if isinstance(side, Literal) and parse_timestamp(str(side.value)) is None:
        raise Fault(f"{shorten(repr(side.value))} is no timestamp")


def _dashed(node: Binary, left: Kind, error: BadExpression) -> BadExpression:
    """`labels.a-b` reads as a subtraction; say how such a key is written."""
    if node.op != "-" or not isinstance(node.left, Select) or left not in ("string", "any"):
        return error
    key = shorten(repr(f"{node.left.name}-{dotted(node.right)}"))
    return BadExpression(error.message, error.at, f"a key with a dash is written [{key}]")
