"""Values of expressions that fit into a register."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.abi.assembler import ALU
from purebpf.asm import R0, R1, R2, R6, Register
from purebpf.script import tree
from purebpf.script.builtins import BUILTINS
from purebpf.script.constants import is_literal
from purebpf.script.lowering.layout import STARTED
from purebpf.script.lowering.memory import Foreign
from purebpf.script.lowering.stacks import Stacks
from purebpf.script.registers import MACHINES
from purebpf.script.script_error import ScriptError
from purebpf.script.types import U32, U64, room
from purebpf.symbols.usdt_arguments import Argument, Where

__all__ = ["Values"]

_CALLS: Mapping[str, str] = {
    "nsecs": "ktime_get_boot_ns", "cpu": "get_smp_processor_id", "rand": "get_prandom_u32",
    "numaid": "get_numa_node_id", "jiffies": "jiffies64", "cgroup": "get_current_cgroup_id",
    "curtask": "get_current_task",
}  # fmt: skip
_HALVES: Mapping[str, tuple[str, bool]] = {
    "initial pid": ("get_current_pid_tgid", True), "initial tid": ("get_current_pid_tgid", False),
    "gid": ("get_current_uid_gid", True), "uid": ("get_current_uid_gid", False),
    "username": ("get_current_uid_gid", False),
}  # fmt: skip
_CODE_SEGMENT = 136
_BY_ZERO = (
    "Divide or modulo by 0 detected. This can lead to unexpected results. "
    "1 is being used as the result."
)


class Values(Stacks):
    """Numbers: R0 is the value, other registers but R6 and R9 do not last."""

    def scalar(self, node: tree.Expression) -> None:
        """R0 = the value of an expression."""
        value = self.constant(node)
        if value is not None:
            self.code.move(R0, value)
            return
        mark = self.mark()
        self._scalar(node)
        self.release(mark)

    def _scalar(self, node: tree.Expression) -> None:
        match node:
            case tree.Variable():
                self.code.load(R0, *self.variable(node), 8)
            case tree.Map():
                self.load_value(self.map_info(node), node.key)
            case tree.Name():
                self._name(node)
            case tree.Call(expansion=tree.BlockValue() as body):
                self.scalar(body)
            case tree.Call():
                self.call(node)
            case tree.BlockValue():
                self.statements(node.statements)
                if node.result is not None:
                    self.discard(node.result)
            case tree.Unary() if node.operator != "!":
                self.scalar(node.operand)
                if node.operator == "-":
                    self.code.negate(R0)
                else:
                    self.code.alu("^=", R0, -1)
            case tree.Deref() | tree.Field() | tree.Index():
                self._part(node)
            case tree.AddressOf():
                self._address_of(node)
            case tree.Step():
                self._step(node)
            case tree.Binary() if node.operator in ALU_OPERATORS:
                self.arithmetic(node.operator, node.left, node.right)
            case tree.Binary() | tree.Unary():
                self.truth(node)
            case tree.Ternary():
                self._ternary(node)
            case tree.Cast():
                self._cast(node)
            case _:
                raise ScriptError("a number is needed here", node.start, node.end)

    def statements(self, statements: list[tree.Statement]) -> None:
        """Generate statements."""
        raise NotImplementedError

    def discard(self, node: tree.Expression) -> None:
        """Evaluate an expression; R0 is its value if it is a number."""
        raise NotImplementedError

    def call(self, node: tree.Call) -> None:
        """R0 = the result of a call."""
        raise NotImplementedError

    def truth(self, node: tree.Expression) -> None:
        """R0 = 1 if a condition holds, else 0."""
        raise NotImplementedError

    def condition_value(self, node: tree.Ternary, *, is_number: bool) -> None:
        """Evaluate one of the two sides."""
        raise NotImplementedError

    def _part(self, node: tree.Deref | tree.Field | tree.Index) -> None:
        if isinstance(node, tree.Deref) or self.is_foreign(node):
            self.foreign_scalar(node)
        else:
            self.local_scalar(node)

    def _address_of(self, node: tree.AddressOf) -> None:
        operand = node.operand
        if isinstance(operand, tree.Variable):
            self.address(R0, self.variable(operand))
        elif self.is_foreign(operand):
            found = self.find(operand)
            self.code.alu("+=", R0, found.offset)
        else:
            raise ScriptError("this value has no address", node.start, node.end)

    def _ternary(self, node: tree.Ternary) -> None:
        self.condition_value(node, is_number=node.type.is_scalar)

    def _step(self, node: tree.Step) -> None:
        type_ = node.type
        amount = node.amount * (max(1, type_.target.size) if type_.kind == "ptr" else 1)
        code, target = self.code, node.target
        if isinstance(target, tree.Map):
            self.add(self.map_info(target), target.key, amount)
        else:
            assert isinstance(target, tree.Variable)
            place = self.variable(target)
            code.load(R0, *place, 8)
            code.copy(R1, R0)
            code.alu("+=", R1, amount)
            if target.slot is not None and target.slot.type is not None:
                self.narrow(R1, target.slot.type)
            code.store(place.base, place.offset, R1, 8)
        if node.is_prefix:
            code.alu("+=", R0, amount)

    def _cast(self, node: tree.Cast) -> None:
        if node.type.kind == "ptr" and self.is_foreign(node.operand):
            self.foreign_scalar(node.operand)
            return
        if node.operand.type.kind == "array":
            place = self.take(room(node.operand.type))
            self.store(node.operand, place, node.operand.type)
            self.code.load(R0, *place, node.type.size)
            self.extend(R0, node.type)
            return
        self.scalar(node.operand)
        if node.type.kind == "bool":
            done = self.code.label()
            self.code.jump("==", R0, 0, done)
            self.code.move(R0, 1)
            self.code.place(done)
            return
        self.narrow(R0, node.type)

    # operators

    def is_signed(self, node: tree.Expression) -> bool:
        """Return True if an operator takes the operand as signed."""
        if is_literal(node):
            value = self.constant(node)
            return value is not None and value < 0
        return node.type.signed

    def operands(self, left: tree.Expression, right: tree.Expression) -> None:
        """R0 = left, R1 = right."""
        value = self.constant(right)
        if value is not None:
            self.scalar(left)
            self.code.move(R1, value)
            return
        if isinstance(right, tree.Variable) and right.type.is_scalar:
            self.scalar(left)
            self.code.load(R1, *self.variable(right), 8)
            return
        mark = self.mark()
        self.scalar(left)
        kept = self.keep()
        self.scalar(right)
        self.code.copy(R1, R0)
        self.code.load(R0, *kept, 8)
        self.release(mark)

    def arithmetic(self, operator: str, left: tree.Expression, right: tree.Expression) -> None:
        """R0 = left OP right."""
        code = self.code
        signed = self.is_signed(left) or self.is_signed(right)
        value = self.constant(right)
        scale = 1
        if operator in "+-" and left.type.kind == "ptr" and right.type.kind != "ptr":
            scale = max(1, left.type.target.size)
        word = f"{operator}="
        if operator == ">>" and self.is_signed(left):
            word = "s>>="
        is_short = value is not None and abs(value * scale) < 1 << 31
        is_shift = operator in ("<<", ">>")
        if (
            value is not None
            and operator not in "/%"
            and is_short
            and (not is_shift or 0 <= value < 64)
        ):
            self.scalar(left)
            code.alu(word, R0, value * scale)
            return
        self.operands(left, right)
        if operator in "/%":
            self._divide_checked(operator, left, right, is_signed=signed)
            return
        if scale > 1:
            code.alu("*=", R1, scale)
        if operator == "+" and right.type.kind == "ptr" and left.type.kind != "ptr":
            code.alu("*=", R0, max(1, right.type.target.size))
        code.alu_register(word, R0, R1)

    def _divide_checked(
        self, operator: str, left: tree.Expression, right: tree.Expression, *, is_signed: bool
    ) -> None:
        """R0 = R0 / R1 or R0 % R1; 1 with a warning if R1 is 0."""
        code = self.code
        if divisor := self.constant(right):
            self.divide(operator, is_signed, is_positive=divisor > 0)
            return
        fine, done = code.label(), code.label()
        code.jump("!=", R1, 0, fine)
        self.warn(_BY_ZERO, tree.Node(left.start, right.end))
        code.move(R0, 1)
        code.go(done)
        code.place(fine)
        self.divide(operator, is_signed)
        code.place(done)

    def divide(self, operator: str, signed: bool, *, is_positive: bool = False) -> None:
        """R0 = R0 / R1 or R0 % R1; by zero, the quotient is 0 and the rest is R0.

        The signs are handled apart: signed division needs CPU version 4 (Linux 6.6). R1 has none
        if `is_positive`.
        """
        code, word = self.code, f"{operator}="
        if not signed:
            code.alu_register(word, R0, R1)
            return
        code.copy(R2, R0)
        if operator == "/" and not is_positive:
            code.alu_register("^=", R2, R1)
        for register in (R0,) if is_positive else (R0, R1):
            positive = code.label()
            code.jump("s>=", register, 0, positive)
            code.negate(register)
            code.place(positive)
        code.alu_register(word, R0, R1)
        done = code.label()
        code.jump("s>=", R2, 0, done)
        code.negate(R0)
        code.place(done)

    # builtins

    def _name(self, node: tree.Name) -> None:
        code, name = self.code, node.name
        if name in _CALLS:
            code.call_helper(_CALLS[name])
        elif name in _HALVES:
            helper, is_high = _HALVES[name]
            code.call_helper(helper)
            if is_high:
                code.alu(">>=", R0, 32)
            else:
                code.zero_extend(R0)
        elif name in ("pid", "tid"):
            self.task_number(is_process=name == "pid")
        elif name == "elapsed":
            code.call_helper("ktime_get_boot_ns")
            code.map_value(R1, "globals", STARTED)
            code.load(R1, R1, 0, 8)
            code.alu_register("-=", R0, R1)
        elif name in ("ppid", "leader_tid"):
            first, second = ("real_parent", "tgid") if name == "ppid" else ("group_leader", "pid")
            self.task_member(node, first, second)
            self.read_word(Foreign(0, U32, "kernel"))
        elif name == "probe":
            code.move(R0, self.unit.number)
        elif name == "kstack":
            self.kernel_stack()
        elif name == "usermode":
            code.load(R0, R6, _CODE_SEGMENT, 8)
            code.alu("&=", R0, 3)
            code.alu(">>=", R0, 1)
        elif name == "ctx":
            code.copy(R0, R6)
        else:
            self._register(node)

    def function_of_return(self, counter: int) -> None:
        """The start of a function from its `ret`: the cookie is the distance, 0 at a return."""
        code = self.code
        code.call_helper("get_attach_cookie", Register(R6))
        code.copy(R1, R0)
        code.load(R0, R6, counter, 8)
        code.alu_register("-=", R0, R1)

    def _register(self, node: tree.Name) -> None:
        code, name, kind = self.code, node.name, self.unit.point.kind
        if name == "func" and kind in ("fentry", "fexit", "kprobe", "kretprobe"):
            code.call_helper("get_func_ip", Register(R6))
            return
        if name == "retval" and kind == "fexit":
            self._result(node)
            return
        if name[:3] == "arg" and kind == "usdt":
            self._static_argument(node, int(name[3:]))
            return
        if name[:3] == "arg" and kind == "rawtracepoint":
            code.load(R0, R6, 8 * int(name[3:]), 8)
            return
        registers = MACHINES[self.context.host.machine]
        if name == "func" and kind == "uretprobe":
            self.function_of_return(registers.counter)
        elif name == "func":
            code.load(R0, R6, registers.counter, 8)
        elif name == "retval":
            code.load(R0, R6, registers.result, 8)
        elif name in BUILTINS and int(name[3:]) < len(registers.arguments):
            code.load(R0, R6, registers.arguments[int(name[3:])], 8)
        else:
            number = int(name[3:]) - len(registers.arguments)
            code.load(R0, R6, registers.stack_pointer, 8)
            space = "user" if kind == "uprobe" else "kernel"
            self.read_word(Foreign(registers.stack_arguments + 8 * number, U64, space))

    def _static_argument(self, node: tree.Name, number: int) -> None:
        """R0 = an argument of a static probe: a constant, a register, or a word of memory."""
        code, argument = self.code, self.unit.point.arguments[number]
        assert isinstance(argument, Argument)
        if argument.where == Where.CONST:
            code.move(R0, argument.value)
            return
        code.load(R0, R6, argument.register, 8)
        if argument.where == Where.REG:
            self.narrow(R0, node.type)
            return
        if argument.where == Where.SIB:
            code.load(R1, R6, argument.index_register, 8)
            code.alu("*=", R1, argument.scale)
            code.alu_register("+=", R0, R1)
        self.read_word(Foreign(argument.value, node.type, "user"))

    def _result(self, node: tree.Name) -> None:
        self.code.load(R0, R6, self.unit.result_place, 8)
        self.narrow(R0, node.type)

    def task_member(self, node: tree.Node, first: str, second: str) -> None:
        """R0 = the address of a member of a task that belongs to the current one.

        Raises:
            ScriptError: the kernel has no types.
        """
        task = self.context.find_task()
        outer = task.layout.member(first) if task is not None and task.layout else None
        inner = task.layout.member(second) if task is not None and task.layout else None
        if outer is None or inner is None:
            raise ScriptError("the kernel's BTF does not describe tasks", node.start, node.end)
        self.code.call_helper("get_current_task")
        self.read_word(Foreign(outer.offset, U64, "kernel"))
        self.code.alu("+=", R0, inner.offset)


ALU_OPERATORS = frozenset(word[:-1] for word in ALU if word[0] not in "s=")
"""Operators that make a number of two."""
