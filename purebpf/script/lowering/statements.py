"""Statements."""

from __future__ import annotations

from purebpf.abi.assembler import Label
from purebpf.asm import R0, R1
from purebpf.script import tree
from purebpf.script.lowering.callbacks import Callbacks
from purebpf.script.types import room

__all__ = ["Statements"]


class Statements(Callbacks):
    """Generates the code of blocks."""

    def block(self, block: tree.Block) -> None:
        """Generate the statements of a block."""
        self.statements(block.statements)

    def statements(self, statements: list[tree.Statement]) -> None:
        """Generate statements."""
        for statement in statements:
            mark = self.mark()
            self.mark_line(statement)
            self._statement(statement)
            self.release(mark)

    def _statement(self, node: tree.Statement) -> None:
        match node:
            case tree.Discard():
                self.discard(node.value)
            case tree.Assign(target=tree.Map() as target):
                self._assign_map(node, target)
            case tree.Assign(target=tree.Variable() as target):
                self._assign_variable(node, target)
            case tree.Let():
                self._let(node)
            case tree.If():
                self._if(node)
            case tree.Unroll():
                self._unroll(node)
            case tree.While():
                self._while(node)
            case tree.For():
                self._for(node)
            case tree.Jump():
                self._jump(node)

    def discard(self, node: tree.Expression) -> None:
        """Evaluate an expression; R0 is its value if it is a number."""
        value = node.expansion if isinstance(node, tree.Call) and node.expansion else node
        if isinstance(value, tree.BlockValue):
            self.statements(value.statements)
            if value.result is not None:
                self.discard(value.result)
        elif isinstance(value, tree.Ternary) and not value.type.is_scalar:
            self.condition_value(value, is_number=False)
        elif isinstance(value, tree.Call) or value.type.is_scalar:
            if not (isinstance(value, tree.Call) and value.type.kind not in ("none", "bool")
                    and not value.type.is_scalar):  # fmt: skip
                self.scalar(value)
        elif value.type.kind not in ("none", "args"):
            self.locate(value)

    def _assign_map(self, node: tree.Assign, target: tree.Map) -> None:
        info = self.map_info(target)
        if isinstance(node.value, tree.BlockValue) and info.is_aggregate:
            self.statements(node.value.statements)
        elif info.is_aggregate:
            assert isinstance(node.value, tree.Call)
            self.aggregate(info, target.key, node.value)
        elif node.operator == "=":
            self.assign(info, target.key, node.value)
        elif node.operator in "+-":
            self.scalar(node.value)
            if info.value is not None and info.value.kind == "ptr":
                self.code.alu("*=", R0, max(1, info.value.target.size))
            if node.operator == "-":
                self.code.negate(R0)
            self.add(info, target.key, self.keep())
        else:
            target.type = info.read_type()
            value = tree.Binary(node.start, node.end, node.operator, target, node.value)
            value.type = target.type
            self.assign(info, target.key, value)

    def _assign_variable(self, node: tree.Assign, target: tree.Variable) -> None:
        assert target.slot is not None
        assert target.slot.type is not None
        place = self.variable(target)
        if node.operator == "=":
            if _refers_to(node.value, target.slot) and not target.slot.type.is_scalar:
                copy = self.take(room(target.slot.type))
                self.store(node.value, copy, target.slot.type)
                self.copy_memory(place, copy, room(target.slot.type))
            else:
                self.store(node.value, place, target.slot.type)
            return
        target.type = target.slot.type
        self.arithmetic(node.operator, target, node.value)
        self.narrow(R0, target.slot.type)
        self.code.store(place.base, place.offset, R0, 8)

    def _let(self, node: tree.Let) -> None:
        slot = node.target.slot
        if slot is None or slot.type is None:
            return
        if node.value is not None:
            self.store(node.value, self.variable(node.target), slot.type)
        else:
            self.zero(self.variable(node.target), room(slot.type))

    def _if(self, node: tree.If) -> None:
        code = self.code
        yes, no, done = code.label(), code.label(), code.label()
        self.condition(node.test, yes, no)
        code.place(yes)
        self.block(node.yes)
        code.go(done)
        code.place(no)
        if node.no is not None:
            self.block(node.no)
        code.place(done)

    def _unroll(self, node: tree.Unroll) -> None:
        done = self.code.label()
        for _ in range(self.constant(node.count) or 0):
            following = self.code.label()
            self._body(node.body, done, following)
            self.code.place(following)
        self.code.place(done)

    def _body(self, body: tree.Block, done: Label, following: Label) -> None:
        outer, self._loops = self._loops, (*self._loops, (done, following))
        self.block(body)
        self._loops = outer

    def _while(self, node: tree.While) -> None:
        code = self.code
        top, inside, done = code.label(), code.label(), code.label()
        self.context.has_loops = True
        code.place(top)
        code.may_go(done)
        self.condition(node.test, inside, done)
        code.place(inside)
        self._body(node.body, done, top)
        code.go(top)
        code.place(done)

    def _for(self, node: tree.For) -> None:
        if isinstance(node.source, tree.Map):
            self.loop_over_map(node, node.source)
            return
        code = self.code
        self.context.has_loops = True
        target, counter, last = self.variable(node.target), self.take(8), self.take(8)
        top, following, done = code.label(), code.label(), code.label()
        self.scalar(node.source.first)
        self.hide_constant()
        code.store(counter.base, counter.offset, R0, 8)
        self.scalar(node.source.last)
        code.store(last.base, last.offset, R0, 8)
        code.place(top)
        code.may_go(done)
        code.load(R0, *counter, 8)
        code.load(R1, *last, 8)
        code.jump_register("s>=", R0, R1, done)
        code.store(target.base, target.offset, R0, 8)
        self._body(node.body, done, following)
        code.place(following)
        code.load(R0, *counter, 8)
        code.alu("+=", R0, 1)
        code.store(counter.base, counter.offset, R0, 8)
        code.go(top)
        code.place(done)

    def _jump(self, node: tree.Jump) -> None:
        if node.word == "return":
            self.code.go(self.end)
        else:
            done, following = self._loops[-1]
            self.code.go(done if node.word == "break" else following)


def _refers_to(value: tree.Expression, slot: tree.Slot) -> bool:
    return any(isinstance(part, tree.Variable) and part.slot is slot for part in tree.walk(value))
