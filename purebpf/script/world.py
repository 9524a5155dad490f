"""`World`: the types and constants that a script may name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from purebpf.abi import syscalls
from purebpf.abi.tables import find_constant
from purebpf.script import tree
from purebpf.script.btf_types import BtfTypes
from purebpf.script.c_declarations import BASIC, read_declaration, read_define
from purebpf.script.host import Host
from purebpf.script.kernel_constants import KERNEL_CONSTANTS
from purebpf.script.script_error import ScriptError
from purebpf.script.types import BOOL, CHAR, U64, VOID, Type, integer, pointer, string

__all__ = ["World"]

_C_WORDS = ("unsigned", "signed", "long", "short", "int", "char")
_LONGEST = 1 << 20


class World:
    """Types and constants: the script's own first, then the kernel's.

    Attributes:
        macros: the texts of `#define` by name.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._types: dict[str, Type] = {}
        self._constants: dict[str, int] = {}
        self.macros: dict[str, str] = {}

    @cached_property
    def kernel(self) -> BtfTypes | None:
        """The kernel's types; None if the machine has none."""
        btf = self._host.btf()
        return BtfTypes(btf) if btf is not None else None

    def declare(self, script: tree.Script, text: str) -> None:
        """Add the C declarations of a script.

        Raises:
            ScriptError: C that is not understood.
        """
        for start, part in script.c_text:
            if not part.startswith("#"):
                read_declaration(text, start, self.named, self._define, self._constants)
            elif (macro := read_define(part)) is not None:
                self.macros[macro[0]] = macro[1]
                if macro[1].isdecimal():
                    self._constants[macro[0]] = int(macro[1])  # for sizes of arrays

    def _define(self, name: str, type_: Type) -> None:
        self._types[name] = type_

    def named(self, name: str) -> Type | None:
        """Find a type by its name without `*` and `[]`."""
        if name in self._types:
            return self._types[name]
        if name in ("void", "bool", "char"):
            return {"void": VOID, "bool": BOOL, "char": CHAR}[name]
        if (basic := _c_integer(name)) is not None:
            return basic
        if self.kernel is None:
            return None
        return self.kernel.named(name) or next(self._tagged(name), None)

    def _tagged(self, name: str) -> Iterator[Type]:
        """List the kernel's types of a name without its `struct`, `union` or `enum`."""
        assert self.kernel is not None
        for tag in ("struct", "union", "enum"):
            if " " not in name and (found := self.kernel.named(f"{tag} {name}")) is not None:
                yield found

    def type_of(
        self, name: tree.TypeName, look: Callable[[str], Type | None] = lambda _: None
    ) -> Type:
        """Return the type that a script names.

        Args:
            name: the type.
            look: finds types of the program that a block probes: after those of the script, and
                before those of the kernel.

        Raises:
            ScriptError: there is no such type.
        """
        suffixes = list(name.suffixes)
        if name.of is not None:
            found: Type | None = name.of.type
        elif name.name in ("string", "buffer") and suffixes[:1] and suffixes[0] >= 0:
            size = suffixes.pop(0)
            found = string(size) if name.name == "string" else Type("buffer", size)
        else:
            found = self._types.get(name.name) or look(name.name) or self.named(name.name)
            if found is None and suffixes and suffixes[0] == -1:
                found = Type("struct", 0, name=name.name)
        if found is None:
            raise ScriptError(f'Cannot resolve unknown type "{name.name}"', name.start, name.end)
        label = name.name
        for suffix in suffixes:
            found = _with_suffix(found, suffix, label)
            if found.size > _LONGEST:
                raise ScriptError("the type is too large", name.start, name.end)
            label += " *" if suffix == -1 else f"[{suffix}]"
        return found

    def constant(self, name: str) -> tuple[int, str] | None:
        """Return the value of a constant, and the name of its enum, or ""."""
        if name in self._constants:
            return self._constants[name], self._enum_of(name)
        if not name.isupper() and "_" not in name:
            return None
        if self.kernel is not None and (found := self.kernel.constant(name)) is not None:
            return found[0], f"enum {found[1]}" if found[1] else ""
        number = self._host.constant(name)
        if number is None:
            number = _header_constant(name, self._host.machine)
        return None if number is None else (number, "")

    def _enum_of(self, name: str) -> str:
        for key in self._constants:
            enum, _, label = key.partition(".")
            if label == name:
                return enum
        return ""

    def enumerators(self, enum: str) -> Mapping[int, str]:
        """Return the names of an enum's values; `enum` is "enum NAME"."""
        own = {value: key.partition(".")[2] for key, value in self._constants.items()
               if key.startswith(f"{enum}.")}  # fmt: skip
        if own or self.kernel is None:
            return own
        return self.kernel.enumerators(enum.partition(" ")[2])


def _header_constant(name: str, machine: str) -> int | None:
    """Return the value of a macro of the kernel's headers."""
    if name.startswith(("__NR_", "SYS_")):
        call = name.removeprefix("__NR_").removeprefix("SYS_")
        return syscalls.number(syscalls.machine(machine).native, call)
    if name in KERNEL_CONSTANTS:
        return KERNEL_CONSTANTS[name]
    return find_constant(name)


def _with_suffix(type_: Type, suffix: int, label: str) -> Type:
    if suffix == -1:
        return pointer(label, lambda: type_)
    return Type("array", suffix * type_.size, count=suffix, items=(type_,))


def _c_integer(name: str) -> Type | None:
    if name in BASIC:
        return integer(*BASIC[name])
    words = name.split()
    if not words or any(word not in _C_WORDS for word in words):
        return None
    size = 4
    if "char" in words:
        size = 1
    elif "short" in words:
        size = 2
    elif "long" in words:
        size = U64.size
    return integer(size, "unsigned" not in words)
