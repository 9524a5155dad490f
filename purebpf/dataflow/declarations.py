"""The declarations that the flow of pointers asks for; DWARF and BTF answer differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from purebpf.dataflow.pointers import Pointer, State
    from purebpf.dataflow.types import Type

__all__ = ["Scope"]


class Scope(Protocol):
    """The declarations that a function can see.

    Attributes:
        follows_elements: a pointer behind its object leads to the next element of an array. False
            where programs step from a member to the struct around it.
        unwinds: an exception may lead to code that no path leads to.
    """

    follows_elements: bool
    unwinds: bool

    def entered(self) -> Mapping[int, Pointer]:
        """Return the pointers in registers before the first instruction."""

    def used(self, address: int, /) -> Mapping[int, Pointer]:
        """Return the pointers in registers before an instruction, by their later use."""

    def per_cpu(self, address: int, /, *, is_plain: bool) -> tuple[Type | None, int] | None:
        """Return the type of the per-CPU variable at an address, and the offset in it."""

    def declared(self, address: int, /) -> Mapping[int, Pointer]:
        """Return the pointers that variables hold in registers before the instruction there."""

    def on_stack(
        self, address: int, offset: int, state: State, /
    ) -> tuple[Type | None, int] | None:
        """Return the type of the variable at an offset from the CFA, and the offset in it."""

    def at(self, address: int, /) -> tuple[Type | None, int] | None:
        """Return the type of the global variable at an address, and the offset in it."""

    def computed(self, address: int, /) -> Pointer | None:
        """Return the pointer that the arithmetic which ends at an address makes; None: unknown."""

    def around(
        self, pointer: Pointer, size: int, value: Pointer | None = None, /
    ) -> Pointer | None:
        """Return a pointer outside its object as one into the struct around it; None: unknown.

        `value` is the pointer that the touched place contains, by its later use.
        """

    def decoded(self, pointer: Pointer | None, bits: int, /) -> Pointer | None:
        """Return the pointer that is left without its lowest bits, which said what it leads to."""

    def cast(self, of: Type | None, offset: int, /) -> Pointer | None:
        """Return the pointer in a member declared as `void *` or a number; None: unknown."""

    def is_offset_of_cpu(self, address: int, /) -> bool:
        """Return True for the variable that has the distance of a CPU's variables."""

    def jumps_to(self, address: int, /) -> int | None:
        """Return the register that the thunk at an address jumps to; None: it is no thunk."""

    def returns(self, address: int, /) -> Type | None:
        """Return the type that the function at an address returns; None: unknown, or void."""
