"""The execution contexts of threads: each has the address of its own in thread-local data."""

from __future__ import annotations

from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.runtimes.ruby.layout import RubyLayout
from purebpf.runtimes.ruby.ruby_file import ContextPlace, MainThread
from purebpf.tuples import NamedTuple

__all__ = ["ContextSlot", "find_slot", "main_context", "read_context"]

_BLOCKS_AT = 8
"""From the thread pointer, in glibc: the list of the blocks of modules, 16 bytes for each."""
_BLOCK_SIZE = 16
_MOST_MODULES = 4096
_MOST_OFFSET = 1 << 30


class ContextSlot(NamedTuple):
    """The place of the context in each thread of a process.

    Attributes:
        block: in the list of the blocks, the place of the interpreter's; 0: it has none.
        offset: in that block, or from the thread pointer.
    """

    block: int
    offset: int


def find_slot(memory: Memory, place: ContextPlace, bias: int) -> ContextSlot:
    """Return the place of the context in the threads of a process.

    Args:
        memory: the process's.
        place: as its file has it.
        bias: from an address in the file to one in the process.

    Raises:
        UnreadableError: the linker has not filled it in, or it is none.
    """
    if not place.got:
        return ContextSlot(0, place.offset)
    first = memory.number(place.got + bias)
    if not place.is_block:
        slot = ContextSlot(0, _signed(first) + place.offset)
    else:
        if not 0 < first < _MOST_MODULES:
            raise UnreadableError
        offset = _signed(memory.number(place.got + bias + 8)) + place.offset
        slot = ContextSlot(_BLOCK_SIZE * first, offset)
    if not -_MOST_OFFSET < slot.offset < _MOST_OFFSET:
        raise UnreadableError
    return slot


def read_context(memory: Memory, slot: ContextSlot, pointer: int) -> int:
    """Return the address that a thread has for its context.

    Args:
        memory: the process's.
        slot: the place of the context.
        pointer: the thread pointer.

    Raises:
        UnreadableError: it has no such data.
    """
    at = pointer
    if slot.block:
        at = memory.number(memory.number(pointer + _BLOCKS_AT) + slot.block)
    return memory.number(at + slot.offset)


def main_context(layout: RubyLayout, memory: Memory, main: MainThread, bias: int) -> int:
    """Return the address of the context of the first thread.

    Raises:
        UnreadableError: there is none yet.
    """
    at = main.address + bias
    for _ in range(main.loads):
        at = memory.number(at)
    return memory.number(memory.number(at + main.offset) + layout.thread_context)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
