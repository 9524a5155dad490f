"""`Decoder`: values from bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from purebpf.abi import syscalls
from purebpf.script.types import Type, offsets
from purebpf.script.world import World

__all__ = ["Decoder", "EnumValue", "Names", "Pointer"]

_AF_INET6 = 10


class Names(Protocol):
    """Names that only the machine of the run knows."""

    def kernel_symbol(self, address: int) -> str:
        """Return the function of a kernel address."""

    def user_symbol(self, pid: int, address: int) -> str:
        """Return the function of an address in a process."""

    def kernel_stack(self, number: int, limit: int, mode: str) -> str:
        """Return a stack as text: an empty line, then a line for each frame."""

    def user_stack(self, number: int, limit: int, mode: str) -> str:
        """Return a stack of a process as text."""

    def error(self, number: int) -> str:
        """Return the text of an errno."""

    def signal(self, number: int) -> str:
        """Return the text of a signal."""

    def cgroup(self, number: int, pattern: str) -> str:
        """Return the paths of a cgroup, in the hierarchies that fit a pattern."""

    def user(self, uid: int) -> str:
        """Return the name of a user."""

    def time(self, boot_ns: int, layout: str) -> str:
        """Return a time since boot as text."""


class Pointer(int):
    """An address."""

    def __str__(self) -> str:
        return f"{int(self):#x}"


class EnumValue(int):
    """A number with a name."""

    name: str

    def __new__(cls, number: int, name: str) -> Self:
        """Name a number."""
        made = super().__new__(cls, number)
        made.name = name
        return made

    def __str__(self) -> str:
        return self.name


class Decoder:
    """Decodes values: numbers, texts, tuples, lists (arrays) and dicts (structs, records).

    Args:
        world: the names of enums.
        probes: the names of the probes by number.
        names: the names that the machine knows.
        longest: the limit of strings; longer ones were cut, and end with `trailer`.
    """

    def __init__(
        self, world: World, probes: Sequence[str], names: Names, longest: int, trailer: str
    ) -> None:
        self._world, self._probes, self._names = world, probes, names
        self._longest, self._trailer = longest, trailer

    def values(self, types: Sequence[Type], data: bytes) -> list[Any]:
        """Decode values that lie one behind the other."""
        places = offsets(types)[0]
        return [self.value(type_, data, at) for type_, at in zip(types, places, strict=True)]

    def value(self, type_: Type, data: bytes, at: int = 0) -> Any:
        """Decode the value at a place."""
        match type_.kind:
            case "int" | "bool" | "ptr":
                return self._number(type_, data, at, 8)
            case "string":
                return self._string(data[at : at + type_.size], type_.size)
            case "buffer":
                length = int.from_bytes(data[at : at + 8], "little")
                return bytes(data[at + 8 : at + 8 + min(length, type_.size)])
            case "tuple":
                return tuple(self.values(type_.items, data[at:]))
            case "record":
                return dict(zip(type_.names, self.values(type_.items, data[at:]), strict=True))
            case "struct" | "array" | "args":
                return self._packed(type_, data, at)
        return self._late(type_, data, at)

    def _number(self, type_: Type, data: bytes, at: int, size: int) -> Any:
        number = int.from_bytes(data[at : at + size], "little", signed=type_.signed)
        if type_.kind == "bool":
            return number != 0
        if type_.kind == "ptr":
            return Pointer(number)
        if type_.name.startswith("enum"):
            number &= 0xFFFFFFFF
            return EnumValue(number, self._world.enumerators(type_.name).get(number, str(number)))
        return number

    def _string(self, data: bytes, size: int) -> str:
        raw = data.partition(b"\0")[0]
        text = raw.decode("utf-8", "surrogateescape")
        is_cut = size == self._longest + 1 and len(raw) >= self._longest
        return text + self._trailer if is_cut else text

    def _packed(self, type_: Type, data: bytes, at: int) -> Any:
        """Decode a value in the layout of C."""
        if type_.kind == "array":
            item = type_.target
            return [
                self._packed(item, data, at + index * item.size) for index in range(type_.count)
            ]
        if type_.kind in ("struct", "args"):
            members = type_.layout.members() if type_.layout is not None else []
            fields: dict[str, Any] = {}
            for name, member in members:
                value = self._packed(member.type, data, at + member.offset)
                if member.bits:
                    value = int(value) >> member.bit & ((1 << member.bits) - 1)
                fields[name] = value
            return fields
        if type_.kind == "string":
            return self._string(data[at : at + type_.size], type_.size)
        if type_.kind == "none":
            return None
        return self._number(type_, data, at, type_.size)

    def _late(self, type_: Type, data: bytes, at: int) -> Any:
        word = int.from_bytes(data[at : at + 8], "little")
        second = int.from_bytes(data[at + 8 : at + 16], "little")
        names = self._names
        match type_.kind:
            case "ksym":
                return names.kernel_symbol(word)
            case "usym":
                return names.user_symbol(second, word)
            case "kstack":
                return names.kernel_stack(_signed(word), type_.numbers[0], type_.text)
            case "ustack":
                return names.user_stack(word, type_.numbers[0], type_.text)
            case "mac":
                return ":".join(f"{byte:02X}" for byte in data[at : at + 6])
            case "strerror":
                return names.error(word)
            case "signal":
                return names.signal(word)
            case "syscall":
                return syscalls.table(type_.text).get(word) or str(_signed(word))
            case "cgroup":
                return names.cgroup(word, type_.text)
            case "probe":
                return self._probes[word]
            case "username":
                return names.user(word)
            case "time":
                return names.time(word, type_.text)
            case "inet":
                from ipaddress import IPv4Address, IPv6Address

                is_six = word == _AF_INET6
                address = data[at + 8 : at + (24 if is_six else 12)]
                return str(IPv6Address(address) if is_six else IPv4Address(address))
        raise AssertionError(type_)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
