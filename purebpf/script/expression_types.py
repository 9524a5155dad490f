"""Types of expressions."""

from __future__ import annotations

from purebpf.script import tree
from purebpf.script.builtins import builtin_type
from purebpf.script.constants import check_literals, encode, fold, is_literal
from purebpf.script.functions.calls import check_call, is_function
from purebpf.script.member_types import element_type, member_type, offset_type, target_type
from purebpf.script.operator_types import (
    COMPARISONS,
    binary_type,
    cast_type,
    check_comparison,
    unary_type,
)
from purebpf.script.script_error import ScriptError
from purebpf.script.stored_types import StoredTypes
from purebpf.script.token_stream import TokenStream
from purebpf.script.types import (
    BOOL,
    I64,
    NONE,
    U64,
    Type,
    c_size,
    integer,
    literal_type,
    pointer,
    spell,
    string,
    tuple_of,
    unify,
)
from purebpf.similar import suggest

__all__ = ["ExpressionTypes"]

_DEEPEST_MACRO = 32


class ExpressionTypes(StoredTypes):
    """The types of expressions in the block that is being checked."""

    _is_measured = False
    """True in the operand of sizeof(), which is not evaluated."""

    def infer(self, node: tree.Expression) -> Type | None:
        """Find the type of an expression; None if it depends on one that is not known yet.

        Raises:
            ScriptError: a type error.
        """
        type_ = self._infer(node)
        if type_ is not None:
            node.type = type_
        elif self.is_final:
            raise ScriptError("the type of this expression is unknown", node.start, node.end)
        return type_

    def constant(self, node: tree.Expression) -> int | None:
        """Return the value of an expression that is known before the script runs."""
        return fold(node, self.settings)

    def number(self, node: tree.Expression, use: str) -> int:
        """Return the value of an expression that must be a constant.

        Raises:
            ScriptError: it is none.
        """
        self.infer(node)
        value = self.constant(node)
        if value is None:
            message = f"{use} must be a number that is known before the script runs"
            raise ScriptError(message, node.start, node.end)
        return value

    def _infer(self, node: tree.Expression) -> Type | None:
        match node:
            case tree.Integer():
                return literal_type(node.value)
            case tree.Bool():
                return BOOL
            case tree.String():
                return string(len(encode(node.value)) + 1)
            case tree.Parameter():
                value = self.settings.parameter(node.number)
                return I64 if isinstance(value, int) else string(len(encode(value)) + 1)
            case tree.Variable():
                return self._variable(node)
            case tree.Map():
                return self._map(node)
            case tree.Name():
                return self._name(node)
            case tree.Call():
                return self._call(node)
            case tree.BlockValue():
                return self.block_value(node)
            case tree.Unary():
                return self._unary(node)
            case tree.Deref():
                return self._deref(node)
            case tree.AddressOf():
                target = self.infer(node.operand)
                return None if target is None else pointer(spell(target), lambda: target)
            case tree.Step():
                return self._step(node)
            case tree.Binary():
                return self._binary(node)
            case tree.Ternary():
                return self._ternary(node)
            case tree.Cast():
                return self._cast(node)
            case tree.Field():
                return self._field(node)
            case tree.Index():
                return self._index(node)
            case tree.Tuple():
                return self._tuple(node.items, ())
            case tree.Record():
                return self._tuple(node.items, node.names)
            case tree.TypeArgument():
                raise ScriptError("a type is no value", node.start, node.end)
            case tree.SizeOf():
                return self._size_of(node)
            case tree.OffsetOf():
                return self._offset_of(node)
        raise AssertionError(node)

    def block_value(self, node: tree.BlockValue) -> Type | None:
        """Check the statements of a block, and return the type of its value."""
        raise NotImplementedError

    def _call(self, node: tree.Call) -> Type | None:
        is_builtin = node.name == "" or is_function(node.name)
        wanted = self.macros.takes(node.name, len(node.arguments))
        if node.name not in self.macros or (is_builtin and not wanted and node.expansion is None):
            return check_call(self, node)
        if node.expansion is None:
            node.expansion = self.macros.expand(node)
        self._expanding += 1
        if self._expanding > _DEEPEST_MACRO:
            raise ScriptError(f"macro {node.name} calls itself", node.start, node.end)
        type_ = self.infer(node.expansion)
        self._expanding -= 1
        return type_

    def _variable(self, node: tree.Variable) -> Type | None:
        slot = self.lookup(node.name)
        if slot is None:
            message = f"Undefined or undeclared variable: {node.name}"
            raise ScriptError(message, node.start, node.end)
        node.slot = slot
        if slot.type is None and self.is_final:
            slot.type = I64
        return slot.type

    def _map(self, node: tree.Map) -> Type | None:
        info = self.map_info(node.name)
        self.check_key(info, node)
        if info.value is None:
            if self.is_final:
                raise ScriptError(f"Undefined map: {node.name}", node.start, node.end)
            return None
        return info.read_type()

    def _name(self, node: tree.Name) -> Type | None:
        if (type_ := builtin_type(self, node)) is not None:
            return type_
        if (text := self.world.macros.get(node.name)) is not None:
            return self._macro(node, text)
        constant = self.world.constant(node.name)
        if constant is None:
            message = f"Unknown identifier: '{node.name}'"
            raise ScriptError(message, node.start, node.end)
        node.value = constant[0]
        return integer(4, constant[0] < 0, constant[1]) if constant[1] else I64

    def _macro(self, node: tree.Name, text: str) -> Type | None:
        """Give a `#define` the value of its text, a number."""
        from purebpf.script.statement_parser import StatementParser

        self._expanding += 1
        if self._expanding > _DEEPEST_MACRO:
            raise ScriptError(f"{node.name} is defined by itself", node.start, node.end)
        try:
            parser = StatementParser(text)
            body = parser.expression()
        except ScriptError as error:
            message = f"#define {node.name}: {error.message}"
            raise ScriptError(message, node.start, node.end) from None
        for part in tree.walk(body):
            part.start, part.end = node.start, node.end
        type_ = self.infer(body)
        self._expanding -= 1
        value = self.constant(body)
        if value is None or (not TokenStream.is_next(parser, "") and parser.token.kind != "end"):
            message = f"#define {node.name} is not a number"
            raise ScriptError(message, node.start, node.end)
        node.value = value
        return type_

    def _unary(self, node: tree.Unary) -> Type | None:
        type_ = self.infer(node.operand)
        return None if type_ is None else unary_type(node, type_)

    def _deref(self, node: tree.Deref) -> Type | None:
        type_ = self.infer(node.operand)
        if type_ is None:
            return None
        if type_.kind == "int":
            return U64
        if type_.kind != "ptr":
            message = f"Can not dereference type '{spell(type_)}' (not a pointer)"
            raise ScriptError(message, node.start, node.end)
        return target_type(type_, node)

    def _step(self, node: tree.Step) -> Type | None:
        if isinstance(node.target, tree.Map):
            info = self.map_info(node.target.name)
            self.check_key(info, node.target)
            if info.value is None:
                info.value, self.changed = I64, True
            type_: Type | None = info.value
        else:
            type_ = self.infer(node.target)
        if type_ is not None and type_.kind not in ("int", "ptr"):
            operator = "++" if node.amount > 0 else "--"
            message = f"The {operator} operator can not be used on a value of type '{spell(type_)}'"
            raise ScriptError(message, node.start, node.end)
        return type_

    def _binary(self, node: tree.Binary) -> Type | None:
        left, right = self.infer(node.left), self.infer(node.right)
        if node.operator in ("&&", "||"):
            return BOOL
        if node.operator in COMPARISONS:
            if left is not None and right is not None:
                check_comparison(node, left, right)
            return BOOL
        if left is None or right is None:
            return None
        check_literals(node, self.settings)
        return binary_type(node, left, right, self.is_signed)

    def is_signed(self, node: tree.Expression) -> bool:
        """Return True if an operator takes an operand as signed; numbers are if below zero."""
        if is_literal(node):
            value = self.constant(node)
            return value is not None and value < 0
        return node.type.signed

    def _ternary(self, node: tree.Ternary) -> Type | None:
        self.infer(node.test)
        yes, no = self.infer(node.yes), self.infer(node.no)
        if yes is None or no is None:
            return None
        if NONE in (yes, no):
            return NONE
        unified = unify(self.kept(yes), self.kept(no))
        if unified is None:
            message = f"Ternary return type mismatch: have '{spell(yes)}' and '{spell(no)}'"
            raise ScriptError(message, node.start, node.end)
        return unified

    def _cast(self, node: tree.Cast) -> Type | None:
        to = self.named_type(node.to)
        inner = self.infer(node.operand)
        if self._is_measured and to is not None and isinstance(node.operand, tree.Integer):
            return to  # sizeof(((struct x)0).member) reads nothing
        return to if inner is None or to is None else cast_type(node, to, inner)

    def _field(self, node: tree.Field) -> Type | None:
        base = self.infer(node.base)
        if base is None:
            return None
        return self._argument(node) if base.kind == "args" else member_type(node, base)

    def _argument(self, node: tree.Field) -> Type:
        fields = self.unit.fields or {}
        if node.name not in fields:
            names = [name for name in fields if not name.startswith("common_")]
            hint = suggest(node.name, names) or f"it has: {', '.join(names)}"
            message = f"{self.unit.point.name} does not have a field '{node.name}'"
            raise ScriptError(message, node.start, node.end, hint)
        return fields[node.name].type

    def _index(self, node: tree.Index) -> Type | None:
        base, index = self.infer(node.base), self.infer(node.index)
        if base is None or index is None:
            return None
        return element_type(node, base, index, self.constant(node.index))

    def _tuple(
        self, items: list[tree.Expression], names: tuple[str, ...] | list[str]
    ) -> Type | None:
        types = [self.infer(item) for item in items]
        for item, type_ in zip(items, types, strict=True):
            if type_ is not None and type_.kind in (
                "none",
                "args",
                "void",
                "hist",
                "lhist",
                "stats",
            ):
                message = f"'{spell(type_)}' cannot be part of a tuple"
                raise ScriptError(message, item.start, item.end)
        known = [self.kept(type_) for type_ in types if type_ is not None]
        return tuple_of(known, names) if len(known) == len(items) else None

    def _size_of(self, node: tree.SizeOf) -> Type | None:
        if isinstance(node.target, tree.TypeName):
            type_: Type | None
            name = node.target.name
            known = name in ("string", "buffer") or self.finds_type(name)
            if not known and not node.target.suffixes and node.target.of is None:
                type_ = self.infer(tree.Name(node.target.start, node.target.end, name))
            else:
                type_ = self.named_type(node.target)
        else:
            outer, self._is_measured = self._is_measured, True
            type_ = self.infer(node.target)
            self._is_measured = outer
        if type_ is None:
            return None
        node.value = c_size(type_)
        return U64

    def _offset_of(self, node: tree.OffsetOf) -> Type | None:
        type_ = self.named_type(node.target)
        return None if type_ is None else offset_type(node, type_)
