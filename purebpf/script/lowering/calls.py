"""Calls of functions, and the events that they send to user space."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.asm import R0, R1, R2, R3, R4, R6
from purebpf.script import tree
from purebpf.script.actions import Action
from purebpf.script.lowering.frame import Place
from purebpf.script.lowering.layout import EXITED, LOST, TAI
from purebpf.script.lowering.memory import Foreign
from purebpf.script.lowering.searches import Searches
from purebpf.script.lowering.stores import PROBE_READ_STR, STRING_READERS
from purebpf.script.map_info import MapInfo
from purebpf.script.registers import MACHINES
from purebpf.script.script_error import ScriptError
from purebpf.script.types import U64, Type, offsets, room, string, tuple_of
from purebpf.script.user_points import find_variable

__all__ = ["Calls"]

_RING_OUTPUT = 130
_JOINED, _JOINED_SIZE = 16, 1024


class Calls(Searches):
    """Generates the code of calls."""

    def call(self, node: tree.Call) -> None:
        """R0 = the result of a call."""
        code, arguments = self.code, node.arguments
        match node.name:
            case "printf" | "errorf" | "warnf" | "cat" | "system":
                self._printf(node)
            case "strcontains":
                self._search(node)
            case "strncmp":
                self._compare_start(node)
            case "len":
                target = arguments[0]
                if isinstance(target, tree.Map):
                    self.count_elements(self.map_info(target))
                else:
                    self.kernel_stack_length(target.type)
            case "socket_cookie":
                self._socket_cookie(arguments[0])
            case "join":
                self._join(node)
            case "strlen":
                self._measure(arguments[0])
            case "strerror" | "cgroup_path" | "signal_name" | "syscall_name":
                self.scalar(arguments[0])
            case "print":
                self._print(node)
            case "clear" | "zero":
                target = arguments[0]
                assert isinstance(target, tree.Map)
                self._send(Action(node.name, text=target.name), ())
            case "time":
                self._send(Action("time", text=_text(arguments) or "%H:%M:%S\n"), ())
            case "exit":
                self._exit(arguments)
            case "delete" | "has_key":
                target = arguments[0]
                assert isinstance(target, tree.Map)
                change = self.delete if node.name == "delete" else self.has_key
                change(self.map_info(target), target.key)
            case "ksym" | "kptr" | "uptr" | "":
                self.scalar(arguments[0])
            case "kstack":
                self.kernel_stack()
            case "bswap":
                self._swap(node)
            case "signal" | "signal_thread":
                self.scalar(arguments[0])
                code.call_helper(f"send_{node.name}", R0)
            case "override":
                self.scalar(arguments[0])
                code.copy(R2, R0)
                code.call_helper("override_return", R6, R2)
            case "write_user":
                self._write_user(node)
            case "nsecs":
                self._clock(arguments)
            case "uaddr":
                self._variable_address(node)
            case "reg":
                registers = MACHINES[self.context.host.machine]
                code.load(R0, R6, registers.by_name[_text(arguments)], 8)
            case _:
                message = f"{node.name}() cannot be used here"
                raise ScriptError(message, node.start, node.end)

    def _variable_address(self, node: tree.Call) -> None:
        """R0 = the address of a variable of the program: it is as far from the probe as in the
        file.
        """
        point = self.unit.point
        found = find_variable(point, _text(node.arguments), self.context.host)
        assert found is not None
        counter = MACHINES[self.context.host.machine].counter
        if point.kind == "uretprobe":
            self.function_of_return(counter)
        else:
            self.code.load(R0, R6, counter, 8)
        self.code.move(R1, found.distance)
        self.code.alu_register("+=", R0, R1)

    def _write_user(self, node: tree.Call) -> None:
        """R0 = 1 if bytes were written to memory of the process."""
        code, (target, value, length) = self.code, node.arguments
        size = self.constant(length) or 0
        kind = value.type if not value.type.is_scalar else U64
        place = self.take(max(size, room(kind)))
        self.zero(place, max(8, -(-size // 8) * 8))
        self.store(value, place, kind)
        self.scalar(target)
        code.copy(R1, R0)
        self.address(R2, place)
        code.move(R3, size)
        code.call_helper("probe_write_user", R1, R2, R3)
        failed, done = code.label(), code.label()
        code.jump("!=", R0, 0, failed)
        code.move(R0, 1)
        code.go(done)
        code.place(failed)
        code.move(R0, 0)
        code.place(done)

    def count_elements(self, info: MapInfo) -> None:
        """R0 = the number of keys of a map."""
        raise NotImplementedError

    def _clock(self, arguments: Sequence[tree.Expression]) -> None:
        clock = arguments[0].name if arguments and isinstance(arguments[0], tree.Name) else "boot"
        helpers = {"monotonic": "ktime_get_ns", "tai": "ktime_get_tai_ns"}
        self.code.call_helper(helpers.get(clock, "ktime_get_boot_ns"))
        if clock == "sw_tai":  # also on kernels older than Linux 6.1
            self.code.map_value(R1, "globals", TAI)
            self.code.load(R1, R1, 0, 8)
            self.code.alu_register("+=", R0, R1)

    def _swap(self, node: tree.Call) -> None:
        self.scalar(node.arguments[0])
        if node.type.size > 1:
            self.code.swap_bytes(R0, 8 * node.type.size)
        else:
            self.code.alu("&=", R0, 0xFF)

    def _exit(self, arguments: Sequence[tree.Expression]) -> None:
        types = (Type("int", 8, True),)
        zero = tree.Integer(0, 0, 0)
        self._send(Action("exit", types), arguments or [zero])
        if self.unit.point.kind != "iter":  # bpftrace prints the other objects, too
            self.code.map_value(R1, "globals", EXITED)
            self.code.store_constant(R1, 0, 1, 8)
        self.code.go(self.end)

    def _printf(self, node: tree.Call) -> None:
        arguments = node.arguments[1:]
        types = tuple(item.type for item in arguments)
        is_placed = node.name in ("errorf", "warnf")
        place = (*node.origin, node.start, node.end) if is_placed else ()
        self._send(Action(node.name, types, _text(node.arguments), place), arguments)

    def _join(self, node: tree.Call) -> None:
        """Send the strings of an array of pointers that ends with a null pointer."""
        code, address = self.code, node.arguments[0]
        size = 8 + _JOINED * _JOINED_SIZE
        self.scalar(address)
        array, word = self.keep(), self.take(8)
        place = self.take(8 + _JOINED * _JOINED_SIZE)
        self.zero(place, size)
        done = code.label()
        space = self.space_of(address)
        for index in range(_JOINED):
            code.load(R0, *array, 8)
            self.read(word, 8, Foreign(8 * index, U64, space))
            code.load(R3, *word, 8)
            code.jump("==", R3, 0, done)
            self.address(R1, place.add(8 + index * _JOINED_SIZE))
            code.move(R2, _JOINED_SIZE)
            code.call_helper(STRING_READERS.get(space, PROBE_READ_STR), R1, R2, R3)
        code.place(done)
        delimiter = node.arguments[1] if len(node.arguments) == 2 else None
        text = delimiter.value if isinstance(delimiter, tree.String) else " "
        types = (tuple_of([string(_JOINED_SIZE)] * _JOINED),)
        self._emit(Action("join", types, text), place, size)

    def _socket_cookie(self, socket: tree.Expression) -> None:
        """R0 = the number that the kernel gives a socket, 0 without a socket."""
        code, done = self.code, self.code.label()
        if offset := self.load_trusted(socket, done):
            code.alu("+=", R0, offset)
        code.call_helper("get_socket_cookie", R0)
        code.place(done)

    def _measure(self, text: tree.Expression) -> None:
        """R0 = the bytes of a string, without its NUL."""
        size = room(text.type) + 1  # an array of characters may have no NUL
        source, copy = self.locate(text), self.take(size)
        self.address(R3, source)
        self.address(R1, copy)
        self.code.move(R2, size)
        self.code.call_helper("probe_read_kernel_str", R1, R2, R3)
        self.code.alu("-=", R0, 1)

    def _search(self, node: tree.Call) -> None:
        """R0 = 1 if a string contains another."""
        code, (text, part) = self.code, node.arguments
        if node.value is not None:
            code.move(R0, node.value)
            return
        if not self.context.search_function:  # before Linux 6.17
            self.search_bytes(node, self._terminated(text), self._terminated(part))
            return
        places = [self._terminated(text), self._terminated(part)]
        self.address(R1, places[0])
        self.address(R2, places[1])
        code.call_kernel(self.context.search_function)
        done, missing = code.label(), code.label()
        code.alu("<<=", R0, 32)
        code.jump("s<", R0, 0, missing)
        code.move(R0, 1)
        code.go(done)
        code.place(missing)
        code.move(R0, 0)
        code.place(done)

    def _terminated(self, text: tree.Expression) -> Place:
        """Return the place of a string with a NUL behind it."""
        size = room(text.type)
        if text.type.size < size or self.literal(text) is not None:
            return self.locate(text)
        place = self.take(size + 8)
        self.code.store_constant(*place.add(size), 0, 8)
        self.store(text, place, text.type)
        return place

    def _compare_start(self, node: tree.Call) -> None:
        """R0 = 0 if the first bytes of two strings are equal, else 1."""
        code, (left, right, _) = self.code, node.arguments
        count = self.constant(node.arguments[2]) or 0
        first, second = self.locate(left), self.locate(right)
        different, same, done = code.label(), code.label(), code.label()
        shorter = min(room(left.type), room(right.type))
        for offset in range(min(count, shorter)):
            code.load(R0, first.base, first.offset + offset, 1)
            code.load(R1, second.base, second.offset + offset, 1)
            code.jump_register("!=", R0, R1, different)
            code.jump("==", R0, 0, same)
        code.place(same)
        code.move(R0, 0)
        code.go(done)
        code.place(different)
        code.move(R0, 1)
        code.place(done)

    def _print(self, node: tree.Call) -> None:
        argument = node.arguments[0]
        if isinstance(argument, tree.Map):
            info = self.map_info(argument)
            if argument.key is None:
                numbers = tuple(self.constant(item) or 0 for item in node.arguments[1:])
                self._send(Action("print map", (), argument.name, numbers), ())
                return
            if info.is_aggregate:
                assert info.key is not None
                self._send(Action("print key", (info.key,), argument.name), [argument.key])
                return
        self._send(Action("print value", (argument.type,)), [argument])

    def _send(self, action: Action, values: Sequence[tree.Expression]) -> None:
        """Send an event, or count its loss."""
        mark = self.mark()
        places, size = offsets(action.types)
        size = size if action.types else 0
        place = self.take(8 + size)
        for value, type_, offset in zip(values, action.types, places, strict=True):
            self.store(value, place.add(8 + offset), type_)
        self._emit(action, place, 8 + size)
        self.release(mark)

    def warn(self, message: str, node: tree.Node) -> None:
        """Send a warning to user space, with its place in the script."""
        self._send(Action("warnf", text=message, numbers=(node.start, node.end)), ())

    def _emit(self, action: Action, place: Place, size: int) -> None:
        """Send an event whose values are in place, or count its loss."""
        code = self.code
        code.store_constant(*place, self.context.add_action(action), 8)
        self.address(R2, place)
        code.map(R1, "events")
        code.move(R3, size)
        code.move(R4, 0)
        code.call(_RING_OUTPUT)
        sent = code.label()
        code.jump("==", R0, 0, sent)
        self.add_to_global(LOST, 1)
        code.place(sent)


def _text(arguments: Sequence[tree.Expression]) -> str:
    first = arguments[0] if arguments else None
    return first.value if isinstance(first, tree.String) else ""
