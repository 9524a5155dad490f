"""Following keys through a map that changes under the walker, in given orders."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator

import pytest

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.loader.maps.map_walk import Interrupted, walk
from purebpf.syscall import backend
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_element import Elements
from tests.support.host.backends import answer_map_info

_KEY = struct.Struct("=I")


class Hash:
    """The keys of a kernel's hash, in bucket order; `before(step)` may change them."""

    def __init__(self, keys: list[int], before: Callable[[int], None] = lambda step: None) -> None:
        self.keys = keys
        self.before = before
        self.steps = 0
        self.error = errno.ENOENT

    def bpf(self, command: int, attr: backend.Attr, size: int) -> int:
        if command == bpf_cmd.BPF_OBJ_GET_INFO_BY_FD:
            return answer_map_info(attr, 4, 8)
        assert command == bpf_cmd.BPF_MAP_GET_NEXT_KEY
        self.before(self.steps)
        self.steps += 1
        fields = ATTR["map_elem"].unpack(ctypes.string_at(attr, size))
        key = ctypes.string_at(int(fields["key"]), 4) if fields["key"] else None
        at = -1 if key is None else self._place(_KEY.unpack(key)[0])
        if at + 1 >= len(self.keys):
            return -self.error
        ctypes.memmove(int(fields["next_key"]), _KEY.pack(self.keys[at + 1]), 4)
        return 0

    def _place(self, key: int) -> int:
        """Where the key is; a vanished one starts over."""
        return self.keys.index(key) if key in self.keys else -1

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        raise AssertionError("no command of bpf(2)")


@pytest.fixture
def elements() -> Iterator[Elements]:
    with (
        Descriptor(os.open("/dev/null", os.O_RDONLY)) as descriptor,
        backend.replaced(Hash([])),
    ):
        yield Elements(descriptor)


def walked(elements: Elements, table: Hash, max_entries: int = 10) -> list[int]:
    with backend.replaced(table):
        return [_KEY.unpack(key)[0] for key in walk(elements, max_entries)]


def test_an_unchanging_map_costs_one_call_for_each_key_and_one_for_the_end(elements):
    table = Hash([5, 3, 9])
    assert walked(elements, table) == [5, 3, 9]
    assert table.steps == 4


def test_an_empty_map(elements):
    assert walked(elements, Hash([])) == []


def test_when_the_current_key_vanishes_nothing_is_seen_twice_or_missed(elements):
    table = Hash([1, 2, 3, 4, 5])
    table.before = lambda step: table.keys.remove(3) if step == 3 else None
    assert walked(elements, table) == [1, 2, 3, 4, 5]


def test_a_caller_may_delete_each_key_it_is_given(elements):
    table = Hash(list(range(8)))
    found = []
    with backend.replaced(table):
        for key in walk(elements, 10):
            (number,) = _KEY.unpack(key)
            found.append(number)
            table.keys.remove(number)
    assert found == list(range(8))
    assert table.steps == 9


def test_a_map_that_starts_over_for_ever_ends_with_an_exception(elements):
    table = Hash([])

    def replace(step: int) -> None:
        table.keys = [3, 4] if step % 2 else [1, 2]

    table.before = replace
    with pytest.raises(Interrupted, match="faster than the walk: 2 keys were seen"):
        walked(elements, table)


def test_a_map_that_grows_in_front_for_ever_ends_with_an_exception(elements):
    table = Hash([0])
    table.before = lambda step: table.keys.append(step + 1)
    with pytest.raises(Interrupted):
        walked(elements, table, max_entries=4)


def test_a_map_without_keys_to_list_is_an_os_error(elements):
    table = Hash([])
    table.error = errno.EINVAL
    with pytest.raises(OSError, match="NEXT_KEY") as caught:
        walked(elements, table)
    assert caught.value.errno == errno.EINVAL


def test_breaking_out_gives_the_element_back(elements):
    with backend.replaced(Hash([1, 2, 3])):
        walker = walk(elements, 10)
        next(walker)
        walker.close()
    assert len(elements._idle) == 1
