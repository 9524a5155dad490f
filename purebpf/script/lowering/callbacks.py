"""Functions that the kernel calls for each element of a map."""

from __future__ import annotations

from purebpf.abi.assembler import Label
from purebpf.asm import R0, R1, R2, R3, R4, R6, R7, R8, R9, R10
from purebpf.asm.program import Function
from purebpf.script import tree
from purebpf.script.lowering.calls import Calls
from purebpf.script.lowering.frame import Place
from purebpf.script.map_info import MapInfo
from purebpf.script.types import room

__all__ = ["Callbacks"]

_SAVED = 24  # the context, the scratch memory, and a word that says that the block ends


class Callbacks(Calls):
    """Generates loops over maps and len(), with bpf_for_each_map_elem() (Linux 5.13).

    The body of a loop is a function of its own. Its R7 is the frame of the program, where all
    variables are.
    """

    _loops: tuple[tuple[Label, Label], ...] = ()
    _saved: Place | None = None

    def prepare_callbacks(self) -> None:
        """Keep the context and the scratch memory where callbacks find them."""
        is_needed = any(
            isinstance(node, tree.For) and isinstance(node.source, tree.Map)
            for node in tree.walk(self.unit.probe)
        )
        if not is_needed:
            return
        place = self._saved = self.take(_SAVED)
        self.code.store(place.base, place.offset, R6, 8)
        if self.has_scratch:
            self.code.store(place.base, place.offset + 8, R9, 8)
        self.code.store_constant(*place.add(16), 0, 8)

    def block(self, block: tree.Block) -> None:
        """Generate the statements of a block."""
        raise NotImplementedError

    def loop_over_map(self, node: tree.For, source: tree.Map) -> None:
        """Run the body of a loop for each element of a map."""
        info = self.map_info(source)
        name = self._callback_name()
        body = Function(name)
        self.functions.append(body)
        self._generate_body(body, node, info)
        self._for_each(info, name)
        flag = self._flag()
        self.code.load(R0, *flag, 8)
        self.code.jump("!=", R0, 0, self.end)

    def _callback_name(self) -> str:
        return f"{self.unit.program_name}_callback{len(self.functions)}"

    def _flag(self) -> Place:
        assert self._saved is not None
        return self.outer_place(self._saved.add(16))

    def _for_each(self, info: MapInfo, function: str) -> None:
        code = self.code
        code.copy(R3, R7 if self.in_callback else R10)
        code.function(R2, function)
        code.map(R1, info.bpf_name)
        code.move(R4, 0)
        code.call_helper("for_each_map_elem", R1, R2, R3, R4)

    def _generate_body(self, body: Function, node: tree.For, info: MapInfo) -> None:
        """Generate the function of a loop, and return to the frame around it."""
        assert self._saved is not None
        outer = self.code, self._used, self.end, self.slots, self.in_callback, self._loops
        self.code, self._used, self.in_callback, self._loops = body, 0, True, ()
        self.end = body.label()
        self.slots = {
            key: Place(R7, place.offset) if place.base == R10 else place
            for key, place in self.slots.items()
        }
        body.source = outer[0].source
        body.copy(R7, R4)
        body.copy(R8, R3)
        body.load(R6, R7, self._saved.offset, 8)
        if self.has_scratch:
            body.load(R9, R7, self._saved.offset + 8, 8)
        following, done = body.label(), body.label()
        self._take_element(node, info)
        self._loops = ((done, following),)
        self.block(node.body)
        body.place(following)
        body.move(R0, 0)
        body.exit()
        body.place(self.end)
        body.store_constant(*self._flag(), 1, 8)
        body.place(done)
        body.move(R0, 1)
        body.exit()
        body.drop_unreachable()
        self.code, self._used, self.end, self.slots, self.in_callback, self._loops = outer

    def _take_element(self, node: tree.For, info: MapInfo) -> None:
        """Copy the key and the value of an element into the variable of the loop."""
        assert info.key is not None
        assert info.value is not None
        target = self.variable(node.target)
        self.copy_memory(target, Place(R2, 0), room(info.key))
        value = target.add(room(info.key))
        if not info.is_aggregate:
            self.copy_memory(value, Place(R8, 0), room(info.value))
            return
        mark = self.mark()
        self.sum_cpus(info, target)
        self.code.store(value.base, value.offset, R0, 8)
        self.release(mark)

    def count_elements(self, info: MapInfo) -> None:
        """R0 = the number of keys of a map."""
        name = f"{self.unit.program_name}_count"
        if all(function.name != name for function in self.functions):
            body = Function(name)
            body.source = self.code.source
            body.load(R1, R4, 0, 8)
            body.alu("+=", R1, 1)
            body.store(R4, 0, R1, 8)
            body.move(R0, 0)
            body.exit()
            self.functions.append(body)
        code, total = self.code, self.take(8)
        code.move(R0, 0)
        self.hide_constant()
        code.store(total.base, total.offset, R0, 8)
        self.address(R3, total)
        code.function(R2, name)
        code.map(R1, info.bpf_name)
        code.move(R4, 0)
        code.call_helper("for_each_map_elem", R1, R2, R3, R4)
        code.load(R0, *total, 8)
