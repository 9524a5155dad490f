"""Searches in strings on kernels without bpf_strstr()."""

from __future__ import annotations

from purebpf.abi.assembler import Label
from purebpf.asm import R0, R1, R2, R3, R4, R5
from purebpf.script import tree
from purebpf.script.lowering.frame import Place
from purebpf.script.lowering.stores import Stores
from purebpf.script.script_error import ScriptError
from purebpf.script.types import room

__all__ = ["Searches"]

_MOST_STEPS = 32768
"""Comparisons that the verifier follows one by one: it takes a million instructions."""


class Searches(Stores):
    """Generates strcontains() as loops whose bounds the verifier sees (Linux 5.3)."""

    def search_bytes(self, node: tree.Call, text: Place, part: Place) -> None:
        """R0 = 1 if the string at one place contains the string at another.

        Raises:
            ScriptError: both may be so long that the verifier would give up.
        """
        code = self.code
        size = room(node.arguments[0].type)
        following, missing, found = code.label(), code.label(), code.label()
        begin, done = code.label(), code.label()
        self.address(R1, text)
        code.move(R2, 0)
        code.place(begin)
        literal = self.literal(node.arguments[1])
        if literal is None:
            code.jump(">=", R2, size, missing)
            self._compare_rest(node, part, (following, missing, found))
        else:
            wanted = literal.partition(b"\0")[0]
            code.jump("s>", R2, size - max(1, len(wanted)), missing)
            code.copy(R3, R1)
            code.alu_register("+=", R3, R2)
            for offset, byte in enumerate(wanted):
                code.load(R0, R3, offset, 1)
                code.jump("!=", R0, byte, following)
            code.go(found)
        code.place(following)
        code.copy(R3, R1)
        code.alu_register("+=", R3, R2)
        code.load(R0, R3, 0, 1)
        code.jump("==", R0, 0, missing)
        code.alu("+=", R2, 1)
        code.go(begin)
        code.place(found)
        code.move(R0, 1)
        code.go(done)
        code.place(missing)
        code.move(R0, 0)
        code.place(done)

    def _compare_rest(self, node: tree.Call, part: Place, ends: tuple[Label, Label, Label]) -> None:
        """Compare the string from R1 + R2 on with the other one, and go to one of the ends."""
        code, (following, missing, found) = self.code, ends
        size, longest = (room(item.type) for item in node.arguments)
        if size * longest > _MOST_STEPS:
            message = "strcontains() of two long strings needs the kernel function bpf_strstr "
            message += "(Linux 6.17)"
            raise ScriptError(message, node.start, node.end)
        again = code.label()
        code.move(R4, 0)
        code.place(again)
        code.jump(">=", R4, longest, found)
        self.address(R5, part)
        code.alu_register("+=", R5, R4)
        code.load(R5, R5, 0, 1)
        code.jump("==", R5, 0, found)
        code.copy(R3, R2)
        code.alu_register("+=", R3, R4)
        code.jump(">=", R3, size, missing)
        code.alu_register("+=", R3, R1)
        code.load(R0, R3, 0, 1)
        code.jump_register("!=", R0, R5, following)
        code.alu("+=", R4, 1)
        code.go(again)
