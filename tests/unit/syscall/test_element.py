"""Elements: buffers that are used again, by one user at a time."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator

import pytest

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.syscall import backend
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.map_element import Elements, Errno
from tests.support.host.backends import answer_map_info


class Table:
    """A substitute behind which there is one hash with keys of 2 and values of 3 bytes."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.flags: list[int] = []

    def bpf(self, command: int, attr: backend.Attr, size: int) -> int:
        if command == bpf_cmd.BPF_OBJ_GET_INFO_BY_FD:
            return answer_map_info(attr, 2, 3)
        fields = ATTR["map_elem"].unpack(ctypes.string_at(attr, size))
        key_address = int(fields["key"])
        key = ctypes.string_at(key_address, 2) if key_address else None
        value = int(fields["value"])
        if command == bpf_cmd.BPF_MAP_DELETE_ELEM and value:
            return -errno.EINVAL
        self.flags.append(int(fields["flags"]))
        if command == bpf_cmd.BPF_MAP_GET_NEXT_KEY:
            later = [row for row in sorted(self.rows) if key is None or row > key]
            if not later:
                return -errno.ENOENT
            ctypes.memmove(value, later[0], 2)
            return 0
        assert key is not None
        if command == bpf_cmd.BPF_MAP_UPDATE_ELEM:
            self.rows[key] = ctypes.string_at(value, 3)
            return 0
        if key not in self.rows:
            return -errno.ENOENT
        if command != bpf_cmd.BPF_MAP_DELETE_ELEM:
            ctypes.memmove(value, self.rows[key], 3)
        if command != bpf_cmd.BPF_MAP_LOOKUP_ELEM:
            del self.rows[key]
        return 0

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        raise AssertionError("no command of bpf(2)")


@pytest.fixture
def table() -> Iterator[Table]:
    with backend.replaced(made := Table()):
        yield made


@pytest.fixture
def elements(table: Table) -> Iterator[Elements]:
    with Descriptor(os.open("/dev/null", os.O_RDONLY)) as descriptor:
        yield Elements(descriptor)


def test_every_command_works_on_the_same_buffers(table, elements):
    element = elements.take()
    element.key[:], element.value[:] = b"ab", b"one"
    assert element.update() == 0
    element.value[:] = b"..."
    assert element.lookup() == 0
    assert element.value == b"one"
    element.key[:] = b"zz"
    assert element.lookup() == element.delete() == -errno.ENOENT
    element.key[:] = b"ab"
    assert element.lookup_and_delete() == 0
    assert table.rows == {}


def test_keys_are_followed_to_the_end(table, elements):
    table.rows = {b"aa": b"", b"bb": b"", b"cc": b""}
    element, found = elements.take(), []
    result = element.first()
    while not result:
        found.append(bytes(element.next_key))
        element.key[:] = element.next_key
        result = element.next()
    assert (found, result) == ([b"aa", b"bb", b"cc"], -errno.ENOENT)


def test_flags_do_not_stick_to_the_next_call(table, elements):
    element = elements.take()
    element.update(4)
    element.lookup()
    element.delete()
    assert table.flags == [4, 0, 0]


def test_a_key_of_another_length_is_refused_before_the_kernel_sees_it(elements):
    element = elements.take()
    with pytest.raises(BufferError):
        element.key[:] = b"long"


def test_an_element_in_use_is_not_given_out_again(elements):
    first, second = elements.take(), elements.take()
    assert first is not second
    elements.give(first)
    assert elements.take() is first


def test_buffers_are_as_long_as_the_kernel_says(elements):
    element = elements.take()
    assert (len(element.key), len(element.value), len(element.next_key)) == (2, 3, 2)


def test_nothing_is_taken_from_a_closed_map(table):
    descriptor = Descriptor(os.open("/dev/null", os.O_RDONLY))
    elements = Elements(descriptor)
    elements.give(elements.take())
    elements.close()
    assert descriptor.closed
    for ask in (elements.take, elements.fileno, elements.using().__enter__):
        with pytest.raises(ValueError, match="closed"):
            ask()


def test_the_descriptor_is_closed_after_its_last_use(elements):
    first, second = elements.take(), elements.take()
    elements.close()
    with pytest.raises(ValueError, match="closed"):
        elements.take()
    elements.give(first)
    assert not elements.descriptor.closed
    elements.give(second)
    assert elements.descriptor.closed


def test_an_element_that_an_exception_dropped_is_not_waited_for(elements):
    elements.take()
    with elements.using() as fd:
        os.fstat(fd)
        elements.close()
    assert elements.descriptor.closed


def assign(buffer, value):
    buffer[:] = value


def test_a_value_is_stored_and_looked_up_in_one_call(table, elements):
    assert elements.updater(assign, assign)(b"ab", b"one", flags=2) == 0
    assert elements.reader(assign, bytes)(b"ab") == b"one"
    missing = elements.reader(assign, bytes)(b"zz", 4)
    assert isinstance(missing, Errno)
    assert missing == errno.ENOENT
    assert table.flags == [2, 0, 4]


def test_an_element_comes_back_whatever_the_encoder_raises(elements):
    for call in (
        lambda: elements.reader(assign, bytes)(b"too long"),
        lambda: elements.updater(assign, assign)(b"ab", b"long!"),
    ):
        with pytest.raises(BufferError):
            call()
    assert len(elements._idle) == len(elements._known) == 1


def test_an_encoder_may_close_the_map(elements):
    def closing(buffer, value):
        elements.close()
        buffer[:] = value

    assert isinstance(elements.reader(closing, bytes)(b"ab"), Errno)
    assert elements.descriptor.closed
    for call in (
        lambda: elements.reader(assign, bytes)(b"ab"),
        lambda: elements.updater(assign, assign)(b"ab", b"one"),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_a_backend_that_was_replaced_is_not_passed_by(elements):
    kernel = backend.current
    with backend.replaced(backend.KernelBackend()) as other:
        made = Elements(elements.descriptor, elements.sizes).take()
    assert made.backend is other
    made.key[:] = b"ab"
    assert backend.current is kernel
    assert made.lookup() == -errno.ENOENT  # the table's answer, not the kernel's EBADF
