"""The syntax tree. The checker writes the type of each expression into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from purebpf.script.types import NONE, Type

__all__ = [
    "AddressOf", "Assign", "Binary", "Block", "BlockValue", "Bool", "Call", "Cast", "Config",
    "Deref", "Discard", "Expression", "Field", "For", "If", "Index", "Integer", "Jump", "Let",
    "Macro", "Map", "MapDeclaration", "Name", "Node", "OffsetOf", "Parameter", "Probe", "Range",
    "Record", "Script", "SizeOf", "Statement", "Step", "String", "Ternary", "Tuple",
    "TypeArgument", "TypeName", "Unary", "Unroll", "Variable", "While", "walk",
]  # fmt: skip


@dataclass(slots=True, eq=False)
class Node:
    """A part of a script, from `start` up to `end`."""

    start: int
    end: int


@dataclass(slots=True, eq=False)
class Expression(Node):
    """A part with a value; `type` is NONE until the checker has found it."""

    type: Type = field(default=NONE, init=False)


@dataclass(slots=True, eq=False)
class Statement(Node):
    """A part that does something."""


@dataclass(slots=True, eq=False)
class Integer(Expression):
    """A number."""

    value: int


@dataclass(slots=True, eq=False)
class Bool(Expression):
    """`true` or `false`."""

    value: bool


@dataclass(slots=True, eq=False)
class String(Expression):
    """A string literal."""

    value: str


@dataclass(slots=True, eq=False)
class Parameter(Expression):
    """`$1`; the number of `$#` is -1."""

    number: int


@dataclass(slots=True, eq=False)
class Slot:
    """A variable of a block: its type, and its place in the frame."""

    name: str
    type: Type | None = None
    declared: bool = False


@dataclass(slots=True, eq=False)
class Variable(Expression):
    """`$name`."""

    name: str
    slot: Slot | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Map(Expression):
    """`@name`, or `@name[key]`."""

    name: str
    key: Expression | None


@dataclass(slots=True, eq=False)
class Name(Expression):
    """A builtin, a constant or an enumerator; `value` is the number of a constant."""

    name: str
    value: int | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A call of a function; `value` is a result that is known at compile time.

    `origin` is the place in the macro that the call comes from, () if it comes from none.
    """

    name: str
    arguments: list[Expression]
    value: int | None = field(default=None, init=False)
    origin: tuple[int, ...] = field(default=(), init=False)
    expansion: BlockValue | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class BlockValue(Expression):
    """`{ statements; value }`; the value is None if the last statement ends with `;`."""

    statements: list[Statement]
    result: Expression | None


@dataclass(slots=True, eq=False)
class Unary(Expression):
    """`!x`, `-x`, `~x`."""

    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Deref(Expression):
    """`*x`."""

    operand: Expression


@dataclass(slots=True, eq=False)
class AddressOf(Expression):
    """`&$x`."""

    operand: Expression


@dataclass(slots=True, eq=False)
class Step(Expression):
    """`x++`, `--x`."""

    amount: int
    is_prefix: bool
    target: Expression


@dataclass(slots=True, eq=False)
class Binary(Expression):
    """`x OP y`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=False)
class Ternary(Expression):
    """`test ? yes : no`."""

    test: Expression
    yes: Expression
    no: Expression


@dataclass(slots=True, eq=False)
class TypeName(Node):
    """A type: its name, then for each suffix -1 (a pointer) or the length of an array.

    The name of `typeof(x)` is "", and `of` is the expression.
    """

    name: str
    suffixes: tuple[int, ...]
    of: Expression | None = None


@dataclass(slots=True, eq=False)
class TypeArgument(Expression):
    """`typeof(...)` as an argument of a macro."""

    target: TypeName


@dataclass(slots=True, eq=False)
class Cast(Expression):
    """`(type)x`."""

    to: TypeName
    operand: Expression


@dataclass(slots=True, eq=False)
class Field(Expression):
    """`x.name` and `x->name`."""

    base: Expression
    name: str


@dataclass(slots=True, eq=False)
class Index(Expression):
    """`x[i]`, and `x.0` of a tuple."""

    base: Expression
    index: Expression


@dataclass(slots=True, eq=False)
class Tuple(Expression):
    """`(a, b)`."""

    items: list[Expression]


@dataclass(slots=True, eq=False)
class Record(Expression):
    """`(a=1, b=2)`."""

    names: list[str]
    items: list[Expression]


@dataclass(slots=True, eq=False)
class SizeOf(Expression):
    """`sizeof(type)` and `sizeof(x)`."""

    target: TypeName | Expression
    value: int = field(default=0, init=False)


@dataclass(slots=True, eq=False)
class OffsetOf(Expression):
    """`offsetof(type, a.b)`."""

    target: TypeName
    path: list[str]
    value: int = field(default=0, init=False)


@dataclass(slots=True, eq=False)
class Block(Node):
    """`{ statements }`; `has_value` if no `;` ends the last one."""

    statements: list[Statement]
    has_value: bool = False


@dataclass(slots=True, eq=False)
class Assign(Statement):
    """`target OP value`; the operator is "=", or "+" for `+=`."""

    operator: str
    target: Variable | Map
    value: Expression


@dataclass(slots=True, eq=False)
class Let(Statement):
    """`let $x: type = value`."""

    target: Variable
    declared: TypeName | None
    value: Expression | None


@dataclass(slots=True, eq=False)
class Discard(Statement):
    """An expression as a statement."""

    value: Expression


@dataclass(slots=True, eq=False)
class If(Statement):
    """`if (test) { } else { }`."""

    test: Expression
    yes: Block
    no: Block | None


@dataclass(slots=True, eq=False)
class While(Statement):
    """`while (test) { }`."""

    test: Expression
    body: Block


@dataclass(slots=True, eq=False)
class Unroll(Statement):
    """`unroll (n) { }`."""

    count: Expression
    body: Block


@dataclass(slots=True, eq=False)
class Range(Node):
    """`a..b`, half open."""

    first: Expression
    last: Expression


@dataclass(slots=True, eq=False)
class For(Statement):
    """`for ($i : a..b) { }` and `for ($kv : @map) { }`."""

    target: Variable
    source: Range | Map
    body: Block


@dataclass(slots=True, eq=False)
class Jump(Statement):
    """`return`, `break`, `continue`; `value` is ignored, as the kernel ignores it."""

    word: str
    value: Expression | None = None


@dataclass(slots=True, eq=False)
class Point(Node):
    """The text of an attach point."""

    text: str


@dataclass(slots=True, eq=False)
class Probe(Node):
    """`points /predicate/ { statements }`."""

    points: list[Point]
    predicate: Expression | None
    body: Block


@dataclass(slots=True, eq=False)
class Config(Node):
    """`name = value` in a config block."""

    name: str
    value: str


@dataclass(slots=True, eq=False)
class MapDeclaration(Node):
    """`let @name = kind(entries);`."""

    name: str
    kind: str
    entries: int


@dataclass(slots=True, eq=False)
class Macro(Node):
    """`macro name(parameters) { body }`; parameters are `$x`, `@x` or `x`."""

    name: str
    parameters: list[str]
    body: BlockValue


@dataclass(slots=True, eq=False)
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
    for name in (item.name for item in fields(node)):
        part = getattr(node, name)
        for inner in part if isinstance(part, list) else (part,):
            if isinstance(inner, Node):
                yield from walk(inner)
