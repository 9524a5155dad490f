"""The member behind a pointer that was moved by an index.

The constant of an indexed operand need not lie in the array that it reads: compilers fold `i - 1`,
and the steps of an unrolled loop, into it, and gcc -O0 puts the place of the array into the index.
So a member is named only if no other array of its type can be meant; else only the struct is sure.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.dataflow.layout import SEVERAL, Place, find, tail_of
from purebpf.dataflow.types import Kind, Type, bare, byte_size
from purebpf.tuples import NamedTuple

__all__ = ["find_indexed"]

_FOLDED = 16
"""Elements that the constant may lie before an array."""
_VECTORS = (16, 32, 64)
_DEEPEST = 8
_MOST = 256


class _Array(NamedTuple):
    """A scalar in the elements of an array: the first one, the array's end, the stride."""

    first: int
    end: int
    stride: int
    size: int

    def takes(self, offset: int, size: int, step: int) -> bool:
        """Return True if an access of a size, at a constant offset, can step through the array."""
        is_vector = size in _VECTORS and self.stride == self.size and size > self.size
        fits = size == self.size or is_vector
        has_room = step % self.stride == 0 and step < self.end - self.first
        if not fits or not (self.stride % step == 0 or has_room):
            return False
        return (offset - self.first) % min(step, self.stride) == 0


def find_indexed(
    of: Type | None, offset: int, size: int, step: int, *, is_fixed: bool = False
) -> Place | None:
    """Return the member that an access touches; None: it is no element.

    Of several arrays of such elements, the place is the whole object.

    Args:
        of: the type of the object.
        offset: the constant, in bytes, within the type.
        size: of the access, in bytes.
        step: the pointer was moved by an unknown multiple of so many bytes.
        is_fixed: the object is a global variable. A constant below an array lies in the variable
            before it, so that only the start of an array is sure.
    """
    stripped, whole = bare(of), byte_size(of)
    if stripped is None or not whole:
        return None
    if stripped.kind is Kind.ARRAY:
        element = byte_size(stripped.target)
        number = offset // element if element else 0
        if not element or (number and number >= stripped.count - _FOLDED):
            return None  # perhaps the array behind it, by a negative constant
        inside = find_indexed(stripped.target, offset % element, size, step)
        return inside and inside._replace(path=_behind_brackets(inside.path), through_array=True)
    if stripped.kind not in (Kind.STRUCT, Kind.UNION):
        is_sure = size % whole == 0 and offset == 0 and not is_fixed
        return find(of, offset, size) if is_sure else None
    place = _in_record(of, offset, size, step)
    is_one = place is not None and place.path != SEVERAL
    is_start = is_one and place is not None and place.through_array and place.offset == offset
    return place if is_start or not is_fixed else None


def _behind_brackets(path: str) -> str:
    return f"[].{path}" if path and not path.startswith("[") else f"[]{path}"


def _in_record(of: Type | None, offset: int, size: int, step: int) -> Place | None:
    whole = byte_size(of)
    if step % whole == 0 and tail_of(of) is None:
        return find(of, offset, size)  # the pointer was moved by whole objects
    access = offset, size, step
    arrays = [one for one in _arrays(of, 0, _DEEPEST, access) if one.takes(*access)]
    if len(arrays) == 1:
        return find(of, arrays[0].first, min(size, arrays[0].size))
    if arrays:
        return Place(SEVERAL, 0, whole, None, through_array=True, within=offset)
    place = find(of, offset, size)
    is_element = whole % step == 0 and step != size  # else it may be `((long *)of)[i]`
    return (
        place
        if is_element and place.type is not None and place.size == size and not place.within
        else None
    )


def _arrays(
    of: Type | None, start: int, depth: int, access: tuple[int, int, int]
) -> Iterator[_Array]:
    """Yield the scalars in arrays of a record, at most 256 and eight levels deep.

    `access` is the constant, the size and the step of an access. With a step of whole elements,
    only the scalar that the constant leads to is one.
    """
    record = bare(of)
    if record is None or not depth:
        return
    for member in record.members[:_MOST]:
        kind = bare(member.type)
        if kind is None:
            continue
        if kind.kind in (Kind.STRUCT, Kind.UNION):
            yield from _arrays(kind, start + member.offset, depth - 1, access)
        elif kind.kind is Kind.ARRAY:
            yield from _elements(kind, start + member.offset, depth - 1, access)


def _elements(
    array: Type, start: int, depth: int, access: tuple[int, int, int]
) -> Iterator[_Array]:
    element, end = bare(array.target), start + byte_size(array)
    stride = byte_size(element)
    while element is not None and element.kind is Kind.ARRAY:
        stride = byte_size(element.target)
        element = bare(element.target)
    if element is None or not stride:
        return
    if element.kind not in (Kind.STRUCT, Kind.UNION):
        yield _Array(start, end, stride, stride)
        return
    offset, size, step = access
    if step % stride == 0:
        inside = (offset - start) % stride
        place = find(element, inside, size)
        if place.type is not None and place.size == size and not place.within:
            yield _Array(start + inside, end, stride, size)
        return
    for member in element.members[:_MOST]:
        kind = bare(member.type)
        size = byte_size(kind)
        if kind is not None and kind.kind in (Kind.SCALAR, Kind.POINTER) and size:
            yield _Array(start + member.offset, end, stride, size)
    yield from _arrays(element, start, depth, access)
