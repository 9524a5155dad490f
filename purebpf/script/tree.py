"""The syntax tree. The checker writes the type of each expression into it."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.script.types import NONE, Type
from purebpf.slotted import Slotted, field

__all__ = [
    "AddressOf", "Assign", "Binary", "Block", "BlockValue", "Bool", "Call", "Cast", "Config",
    "Deref", "Discard", "Expression", "Field", "For", "If", "Index", "Integer", "Jump", "Let",
    "Macro", "Map", "MapDeclaration", "Name", "Node", "OffsetOf", "Parameter", "Probe", "Range",
    "Record", "Script", "SizeOf", "Statement", "Step", "String", "Ternary", "Tuple",
    "TypeArgument", "TypeName", "Unary", "Unroll", "Variable", "While", "walk",
]  # fmt: skip


class Node(Slotted):
    """A part of a script, from `start` up to `end`."""

    start: int
    end: int


class Expression(Node):
    """A part with a value; `type` is NONE until the checker has found it."""

    type: Type = field(default=NONE, init=False)


class Statement(Node):
    """A part that does something."""


class Integer(Expression):
    """A number."""

    value: int


class Bool(Expression):
    """`true` or `false`."""

    value: bool


class String(Expression):
    """A string literal."""

    value: str


class Parameter(Expression):
    """`$1`; the number of `$#` is -1."""

    number: int


class Slot(Slotted):
    """A variable of a block: its type, and its place in the frame."""

    name: str
    type: Type | None = None
    declared: bool = False


class Variable(Expression):
    """`$name`."""

    name: str
    slot: Slot | None = field(default=None, init=False)


class Map(Expression):
    """`@name`, or `@name[key]`."""

    name: str
    key: Expression | None


class Name(Expression):
    """A builtin, a constant or an enumerator; `value` is the number of a constant."""

    name: str
    value: int | None = field(default=None, init=False)


class Call(Expression):
    """A call of a function; `value` is a result that is known at compile time.

    `origin` is the place in the macro that the call comes from, () if it comes from none.
    """

    name: str
    arguments: list[Expression]
    value: int | None = field(default=None, init=False)
    origin: tuple[int, ...] = field(default=(), init=False)
    expansion: BlockValue | None = field(default=None, init=False)


class BlockValue(Expression):
    """`{ statements; value }`; the value is None if the last statement ends with `;`."""

    statements: list[Statement]
    result: Expression | None


class Unary(Expression):
    """`!x`, `-x`, `~x`."""

    operator: str
    operand: Expression


class Deref(Expression):
    """`*x`."""

    operand: Expression


class AddressOf(Expression):
    """`&$x`."""

    operand: Expression


class Step(Expression):
    """`x++`, `--x`."""

    amount: int
    is_prefix: bool
    target: Expression


class Binary(Expression):
    """`x OP y`."""

    operator: str
    left: Expression
    right: Expression


class Ternary(Expression):
    """`test ? yes : no`."""

    test: Expression
    yes: Expression
    no: Expression


class TypeName(Node):
    """A type: its name, then for each suffix -1 (a pointer) or the length of an array.

    The name of `typeof(x)` is "", and `of` is the expression.
    """

    name: str
    suffixes: tuple[int, ...]
    of: Expression | None = None


class TypeArgument(Expression):
    """`typeof(...)` as an argument of a macro."""

    target: TypeName


class Cast(Expression):
    """`(type)x`."""

    to: TypeName
    operand: Expression


class Field(Expression):
    """`x.name` and `x->name`."""

    base: Expression
    name: str


class Index(Expression):
    """`x[i]`, and `x.0` of a tuple."""

    base: Expression
    index: Expression


class Tuple(Expression):
    """`(a, b)`."""

    items: list[Expression]


class Record(Expression):
    """`(a=1, b=2)`."""

    names: list[str]
    items: list[Expression]


class SizeOf(Expression):
    """`sizeof(type)` and `sizeof(x)`."""

    target: TypeName | Expression
    value: int = field(default=0, init=False)


class OffsetOf(Expression):
    """`offsetof(type, a.b)`."""

    target: TypeName
    path: list[str]
    value: int = field(default=0, init=False)


class Block(Node):
    """`{ statements }`; `has_value` if no `;` ends the last one."""

    statements: list[Statement]
    has_value: bool = False


class Assign(Statement):
    """`target OP value`; the operator is "=", or "+" for `+=`."""

    operator: str
    target: Variable | Map
    value: Expression


class Let(Statement):
    """`let $x: type = value`."""

    target: Variable
    declared: TypeName | None
    value: Expression | None


class Discard(Statement):
    """An expression as a statement."""

    value: Expression


class If(Statement):
    """`if (test) { } else { }`."""

    test: Expression
    yes: Block
    no: Block | None


class While(Statement):
    """`while (test) { }`."""

    test: Expression
    body: Block


class Unroll(Statement):
    """`unroll (n) { }`."""

    count: Expression
    body: Block


class Range(Node):
    """`a..b`, half open."""

    first: Expression
    last: Expression


class For(Statement):
    """`for ($i : a..b) { }` and `for ($kv : @map) { }`."""

    target: Variable
    source: Range | Map
    body: Block


class Jump(Statement):
    """`return`, `break`, `continue`; `value` is ignored, as the kernel ignores it."""

    word: str
    value: Expression | None = None


class Point(Node):
    """The text of an attach point."""

    text: str


class Probe(Node):
    """`points /predicate/ { statements }`."""

    points: list[Point]
    predicate: Expression | None
    body: Block


class Config(Node):
    """`name = value` in a config block."""

    name: str
    value: str


class MapDeclaration(Node):
    """`let @name = kind(entries);`."""

    name: str
    kind: str
    entries: int


class Macro(Node):
    """`macro name(parameters) { body }`; parameters are `$x`, `@x` or `x`."""

    name: str
    parameters: list[str]
    body: BlockValue


class Script(Node):
    """A whole script; `c_text` are its C declarations and `#` lines."""

    c_text: list[tuple[int, str]]
    config: list[Config]
    maps: list[MapDeclaration]
    probes: list[Probe]
    macros: list[Macro]


def walk(node: Node) -> Iterator[Node]:
    """List the nodes of a tree, each before its parts."""
    yield node
    for name in node._fields:
        part = getattr(node, name)
        for inner in part if isinstance(part, list) else (part,):
            if isinstance(inner, Node):
                yield from walk(inner)
