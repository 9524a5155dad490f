"""Conditions: jumps to one of two places."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.abi.assembler import Label
from purebpf.asm import R0, R1, R2, R3, R4
from purebpf.script import tree
from purebpf.script.constants import encode
from purebpf.script.lowering.frame import Place
from purebpf.script.lowering.values import Values
from purebpf.script.types import room

__all__ = ["Conditions"]

_MIRRORED: Mapping[str, str] = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


class Conditions(Values):
    """Compares values."""

    def locate(self, node: tree.Expression) -> Place:
        """Return the place of a value that is no number."""
        raise NotImplementedError

    def truth(self, node: tree.Expression) -> None:
        """R0 = 1 if a condition holds, else 0."""
        code = self.code
        yes, no, done = code.label(), code.label(), code.label()
        self.condition(node, yes, no)
        code.place(yes)
        code.move(R0, 1)
        code.go(done)
        code.place(no)
        code.move(R0, 0)
        code.place(done)

    def condition_value(self, node: tree.Ternary, *, is_number: bool) -> None:
        """Evaluate one of the two sides."""
        code = self.code
        yes, no, done = code.label(), code.label(), code.label()
        self.condition(node.test, yes, no)
        for label, side in ((yes, node.yes), (no, node.no)):
            code.place(label)
            if is_number:
                self.scalar(side)
            else:
                self.discard(side)
            if label == yes:
                code.go(done)
        code.place(done)

    def condition(self, node: tree.Expression, yes: Label, no: Label) -> None:
        """Go to `yes` if the condition holds, else to `no`."""
        code = self.code
        value = self.constant(node)
        if value is not None:
            code.go(yes if value else no)
            return
        mark = self.mark()
        match node:
            case tree.Binary(operator="&&" | "||"):
                middle = code.label()
                both = node.operator == "&&"
                self.condition(node.left, middle if both else yes, no if both else middle)
                code.place(middle)
                self.condition(node.right, yes, no)
            case tree.Unary(operator="!"):
                self.condition(node.operand, no, yes)
            case tree.Binary() if node.operator in _MIRRORED:
                self._compare(node, yes, no)
            case _ if node.type.kind == "string":
                code.load(R0, *self.locate(node), 1)
                code.jump("==", R0, 0, no)
                code.go(yes)
            case _:
                self.scalar(node)
                code.jump("==", R0, 0, no)
                code.go(yes)
        self.release(mark)

    def _compare(self, node: tree.Binary, yes: Label, no: Label) -> None:
        code, left, right, operator = self.code, node.left, node.right, node.operator
        if "probe" in (left.type.kind, right.type.kind):
            self._compare_probe(node, yes, no)
            return
        if not (left.type.is_scalar and right.type.is_scalar):
            if operator == "!=":
                yes, no = no, yes
            self._compare_memory(left, right, yes, no)
            return
        if self.constant(left) is not None:
            left, right, operator = right, left, _MIRRORED[operator]
        signed = self.is_signed(left) or self.is_signed(right)
        word = ("s" if signed and operator not in ("==", "!=") else "") + operator
        value = self.constant(right)
        if value is not None and abs(value) < 1 << 31:
            self.scalar(left)
            is_unsigned = left.type.kind == "int" and not left.type.signed
            if value < 0 and is_unsigned and left.type.size < 8 and operator in ("==", "!="):
                code.move(R1, value & ((1 << 8 * left.type.size) - 1))
                code.jump_register(word, R0, R1, yes)
            else:
                code.jump(word, R0, value, yes)
        else:
            self.operands(left, right)
            code.jump_register(word, R0, R1, yes)
        code.go(no)

    def _compare_probe(self, node: tree.Binary, yes: Label, no: Label) -> None:
        """Compare the name of this probe, which is known, with a string."""
        text = node.right if node.left.type.kind == "probe" else node.left
        name = self.unit.point.name
        equal = text.type.kind == "probe"
        if isinstance(text, tree.String):
            equal = text.value == name
        self.code.go(yes if equal == (node.operator == "==") else no)

    def literal(self, node: tree.Expression) -> bytes | None:
        """Return the bytes of a string that is known before the script runs."""
        match node:
            case tree.String():
                return encode(node.value)
            case tree.Parameter():
                return encode(str(self.context.settings.parameter(node.number)))
            case tree.Call(name="str", arguments=[tree.Parameter() as parameter, *_]):
                settings = self.context.settings
                is_given = parameter.number <= len(settings.parameters)
                return encode(str(settings.parameter(parameter.number))) if is_given else b""
        return None

    def _compare_memory(
        self, left: tree.Expression, right: tree.Expression, yes: Label, no: Label
    ) -> None:
        if self.literal(left) is not None:
            left, right = right, left
        text = self.literal(right) if right.type.kind == "string" else None
        first = self.locate(left)
        if text is not None:
            self._compare_literal(first, room(left.type), text, yes, no)
            return
        second = self.locate(right)
        common = min(room(left.type), room(right.type))
        self._compare_words(first, second, common, no)
        longer, size = (first, room(left.type))
        if room(right.type) > size:
            longer, size = (second, room(right.type))
        if size > common:
            self.code.load(R0, longer.base, longer.offset + common, 1)
            self.code.jump("!=", R0, 0, no)
        self.code.go(yes)

    def _compare_literal(self, place: Place, size: int, text: bytes, yes: Label, no: Label) -> None:
        code = self.code
        text = text.partition(b"\0")[0] + b"\0"
        if len(text) > size + 1:
            code.go(no)
            return
        text = text[:size]  # an array of characters may have no NUL
        offset = 0
        while offset < len(text):
            step = next(step for step in (8, 4, 2, 1) if step <= len(text) - offset)
            code.load(R0, place.base, place.offset + offset, step)
            word = int.from_bytes(text[offset : offset + step], "little")
            if step == 8 or word >= 1 << 31:
                code.move(R1, word)
                code.jump_register("!=", R0, R1, no)
            else:
                code.jump("!=", R0, word, no)
            offset += step
        code.go(yes)

    def _compare_words(self, first: Place, second: Place, size: int, no: Label) -> None:
        code = self.code
        if size <= 128:
            for offset in range(0, size, 8):
                code.load(R0, first.base, first.offset + offset, 8)
                code.load(R1, second.base, second.offset + offset, 8)
                code.jump_register("!=", R0, R1, no)
            return
        top = code.label()
        self.address(R1, first)
        self.address(R2, second)
        code.move(R0, 0)
        code.place(top)
        code.load(R3, R1, 0, 8)
        code.load(R4, R2, 0, 8)
        code.jump_register("!=", R3, R4, no)
        code.alu("+=", R1, 8)
        code.alu("+=", R2, 8)
        code.alu("+=", R0, 8)
        code.jump("<", R0, size, top)
