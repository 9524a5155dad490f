"""A global variable that is an array, element by element, where the program has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

from purebpf.btf.codec.arrays import Array
from purebpf.errors import SchemaError
from purebpf.tuples import NamedTuple

__all__ = ["GlobalArray", "VariableBytes"]

_Element = TypeVar("_Element")


class VariableBytes(NamedTuple):
    """Access to a variable's bytes: `read(start, end)` and `write(start, data)`, from its start."""

    name: str
    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], None]


class GlobalArray(Sequence[_Element]):
    """The elements of an array variable as they are now: `obj.globals["table"][3] = 5`.

    Reading or writing an element touches only that one: the program's writes to the others stay.
    Iterating, comparing and `tuple(array)` read all of them at once. Elements that are arrays
    themselves are views as well. It is equal to a tuple or list of the same elements.
    """

    __slots__ = ("_array", "_bytes", "_start")
    __hash__ = None  # type: ignore[assignment] # its elements change

    def __init__(self, array: Array, variable: VariableBytes, start: int = 0) -> None:
        """Show the array that begins `start` bytes into the variable."""
        self._array = array
        self._bytes = variable
        self._start = start

    def __len__(self) -> int:
        return self._array.count

    @overload
    def __getitem__(self, index: int) -> _Element: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Element, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """One element, or a tuple of some.

        Raises:
            IndexError: there are not that many.
            KernelError: the section cannot be mapped or read.
        """
        if isinstance(index, slice):
            return tuple(self)[index]
        element, start = self._array.element, self._find(index)
        if isinstance(element, Array):
            return GlobalArray(element, self._bytes, start)
        return element.decode(self._bytes.read(start, start + element.size))

    def __setitem__(self, index: int, value: Any) -> None:
        """Write one element, and no other.

        Raises:
            IndexError: there are not that many.
            SchemaError: the element's type cannot hold the value.
            KernelError, NotSupportedError: as `Globals.__setitem__`.
        """
        start = self._find(index)
        try:
            data = self._array.element.encode(value)
        except SchemaError as error:
            raise SchemaError(f"variable {self._bytes.name}[{index}]: {error}") from None
        self._bytes.write(start, data)

    def __iter__(self) -> Iterator[_Element]:
        data = self._bytes.read(self._start, self._start + self._array.size)
        elements: Iterable[_Element] = self._array.decode(data)
        return iter(elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GlobalArray | tuple | list):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"GlobalArray{tuple(self)!r}"

    def __str__(self) -> str:
        return str(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the tuple of its elements."""
        return tuple, (tuple(self),)

    def _find(self, index: int) -> int:
        """Return the start of element `index` in the variable."""
        count = self._array.count
        position = index + count if index < 0 else index
        if not 0 <= position < count:
            raise IndexError(f"variable {self._bytes.name} has {count} elements, not [{index}]")
        return self._start + position * self._array.element_size
