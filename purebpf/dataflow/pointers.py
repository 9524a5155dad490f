"""Pointers in registers and on the stack, as the paths of a function carry them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from purebpf.dataflow.layout import find, is_record, tail_of
from purebpf.dataflow.types import Kind, Type, bare, byte_size
from purebpf.tuples import NamedTuple

__all__ = [
    "ELEMENT",
    "NULL",
    "NUMBER",
    "SLOT",
    "TASK_STACK",
    "Pointer",
    "State",
    "choose",
    "factor_of",
    "find_in",
    "held",
    "inside",
    "is_inside",
    "merge",
    "move",
    "pointer_of",
    "wrap",
]

ELEMENT = -1
"""`Pointer.moved`: to an element of an array."""
SLOT = -(1 << 32)
"""Keys of a state: this, minus an offset from the CFA, for a pointer on the stack."""


class Pointer(NamedTuple):
    """A pointer `offset` bytes into an object; without a type, from the CFA of the frame.

    Attributes:
        moved: 0: it leads exactly there; `ELEMENT`: there in some element of an array; above: it
            was moved by an unknown multiple of so many bytes.
        is_fixed: the object is a global variable.
        is_per_cpu: the address has no CPU's offset yet.
        by_use: only a later use of the pointer, as an argument, says its type.
    """

    of: Type | None
    offset: int
    moved: int = 0
    is_fixed: bool = False
    is_per_cpu: bool = False
    by_use: bool = False


NULL = Pointer(Type(Kind.SCALAR), 0)
"""A constant that is no address: NULL, or an error number. Paths with it agree with any other."""

NUMBER = Type(Kind.SCALAR)
"""The type behind `Pointer(NUMBER, 0, moved)`, a number: a multiple of `moved`."""

TASK_STACK = Type(Kind.SCALAR, "stack of a task")
"""The type behind `task_struct.stack`, a `void *`."""

State = Mapping[int, Pointer]
"""Pointers by register (of iced_x86), and by keys of their own in slots of the stack."""


def pointer_of(of: Type | None) -> Pointer | None:
    """Return the pointer that a value of a type is; None: it is none, or leads to void."""
    stripped = bare(of)
    if stripped is None or stripped.kind is not Kind.POINTER or bare(stripped.target) is None:
        return None
    return Pointer(stripped.target, 0)


def find_in(of: Type | None, offset: int, size: int) -> Type | None:
    """Return the type of the member that an access touches; None: not exactly one member."""
    whole = byte_size(of)
    if offset < 0 or not whole:
        return None
    return find(of, offset % whole, size).type


def move(pointer: Pointer, constant: int, by: int) -> Pointer:
    """Return a pointer moved by a constant, and by an unknown multiple of `by`."""
    unknown = [step for step in (pointer.moved, by) if step > 0]
    moved = math.gcd(*unknown) if unknown else by
    return pointer._replace(offset=pointer.offset + constant, moved=moved)


def inside(pointer: Pointer) -> int | None:
    """Return the offset of a pointer within its object, or within an element of an array.

    None: it leads outside, perhaps to another part of a class or struct that begins with the
    object. A pointer to a record leads to another element only if code moves it.
    """
    of, offset = pointer.of, pointer.offset
    whole = byte_size(of)
    if not whole or 0 <= offset < whole:
        return offset
    if pointer.moved or not is_record(of):
        return offset % whole if offset > 0 or pointer.moved else None
    tail = tail_of(of)
    if tail is None or offset < 0:
        return None
    start, element = tail
    return start + (offset - start) % element


def wrap(pointer: Pointer | None) -> Pointer | None:
    """Bring a pointer behind its object back into it: it leads to the next element.

    A pointer to a record stays outside; `merge` says whether a loop moves it.
    """
    if pointer is None or pointer.of is None or (is_record(pointer.of) and not pointer.moved):
        return pointer
    whole = byte_size(pointer.of)
    if not whole or 0 <= pointer.offset < whole:
        return pointer
    if pointer.offset < 0 and pointer.offset % whole:
        return pointer  # not the start of an element: perhaps the object around it
    return move(pointer._replace(offset=pointer.offset % whole), 0, ELEMENT)


def held(state: State, register: int) -> Pointer | None:
    """Return the pointer in a register; None: unknown, or no address."""
    pointer = state.get(register)
    is_number = pointer is not None and pointer.of in (NULL.of, NUMBER)
    return None if is_number else pointer


def factor_of(state: State, register: int) -> int:
    """Return the number that a register is a multiple of; 1: not known."""
    pointer = state.get(register)
    return pointer.moved if pointer is not None and pointer.of is NUMBER else 1


def is_inside(pointer: Pointer, size: int) -> bool:
    """Return True if an access of `size` bytes stays in the object."""
    return 0 <= pointer.offset <= byte_size(pointer.of) - size


def merge(one: State, other: State, *, follows_elements: bool = False) -> State:
    """Return the pointers that two paths have in common.

    A loop over an array moves its pointer; the pointer stays known, as one to any element.
    """
    merged = {}
    for key, value in one.items():
        also = other.get(key)
        if also == value:
            merged[key] = value
        elif also is not None and NULL.of in (value.of, also.of):
            merged[key] = also if value.of is NULL.of else value
        elif also is not None and also._replace(by_use=value.by_use) == value:
            merged[key] = value._replace(by_use=True)
        elif also is not None and value.of is NUMBER and also.of is NUMBER:
            merged[key] = value._replace(moved=math.gcd(value.moved, also.moved))
        elif also is not None and value.of is not None and _is_neighbour(value, also):
            merged[key] = move(value, 0, ELEMENT)
        elif also is not None and follows_elements and _is_next(value, also):
            offset = value.offset % byte_size(value.of)
            merged[key] = move(value._replace(offset=offset), 0, ELEMENT)
    return merged


def _is_next(one: Pointer, other: Pointer) -> bool:
    """Return True for the same place in two objects of an array, as a loop steps through it."""
    whole = byte_size(one.of)
    is_same = other.of is not None and bare(one.of) is bare(other.of) and is_record(one.of)
    return is_same and bool(whole) and (one.offset - other.offset) % whole == 0


def _is_neighbour(one: Pointer, other: Pointer) -> bool:
    """Return True for the same place in two elements of an array, or in one element."""
    if other.of is None or bare(one.of) is not bare(other.of):
        return False
    if one.offset == other.offset:
        return True
    if min(one.offset, other.offset) < 0:
        return False
    places = [find(one.of, pointer.offset, 0) for pointer in (one, other)]
    first, second = ((place.path, place.offset, place.within) for place in places)
    return places[0].through_array and first == second


def choose(known: Pointer | None, declared: Pointer) -> Pointer:
    """Choose between the pointer that the code built and the one that a declaration names.

    The built one says more where it leads into a record, to a member of the declared type.
    """
    if known is not None and known.of is NUMBER and known.moved > 1:
        return known  # a product is no pointer, though clang says so of an index
    whole = byte_size(known.of) if known is not None else 0
    if known is None or not whole:
        return declared
    is_same = bare(known.of) is bare(declared.of)
    if is_same and known.offset != declared.offset and _is_next(known, declared):
        return declared._replace(moved=ELEMENT)  # the variable was moved to the next element
    if known.offset < 0 or inside(known) is None:
        return declared
    if is_same:
        return known if known.offset == declared.offset else declared
    member = find(known.of, known.offset % whole, byte_size(declared.of)).type
    return known if member is not None and bare(member) is bare(declared.of) else declared
