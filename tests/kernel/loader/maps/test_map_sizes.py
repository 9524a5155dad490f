"""A map that is another one than its name promises: nothing is written beyond a buffer's end."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import KernelError
from purebpf.loader.host import cpus
from purebpf.loader.host.pins import open_map
from purebpf.loader.maps.map import Map
from purebpf.syscall import bpf
from purebpf.syscall.map_sizes import read_sizes
from tests.support.host.users import as_user, public_bpffs

pytestmark = pytest.mark.needs("bpf", "bpffs")

KEY = bytes(4)
GUARD = b"\xa5" * 64


def guarded(call: Callable[[int], Any]) -> str:
    """What becomes of a call on a map with values of 3,072 bytes, in a child that may crash."""

    def work() -> str:
        with bpf.map_create(t.BPF_MAP_TYPE_ARRAY, 4, 3072, 2) as array:
            bpf.map_update_elem(array.fileno(), KEY, b"A" * 3072)
            try:
                call(array.fileno())
            except KernelError as error:
                return errno.errorcode[error.errno or 0]
        return "it was done"

    result = as_user(os.getuid(), work)
    assert isinstance(result, str), result
    return result


def lookup(size: int) -> Callable[[int], None]:
    def call(fd: int) -> None:
        room = bytearray(size)
        bpf.map_lookup_elem(fd, KEY, room)
        assert room == b"A" * size

    return call


def batch(fd: int) -> None:
    """Room for two values of 16 bytes."""
    bpf.map_lookup_batch(
        fd,
        in_batch=None,
        out_batch=bytearray(4),
        keys=bytearray(8),
        values=bytearray(32),
        count=2,
    )


@pytest.mark.parametrize("call", [lookup(16), lookup(3071), batch])
def test_a_value_that_is_longer_than_its_buffer_is_refused(call: Callable[[int], Any]) -> None:
    assert guarded(call) == "EINVAL"


def test_a_value_of_its_own_length_is_read() -> None:
    assert guarded(lookup(3072)) == "it was done"


def test_a_pin_of_another_map_is_refused() -> None:
    with public_bpffs() as folder, bpf.map_create(t.BPF_MAP_TYPE_HASH, 8, 512, 2) as other:
        bpf.obj_pin(other.fileno(), f"{folder}/counts")
        with open_map(f"{folder}/counts") as opened:
            for key, value in ((4, 512), (8, 8), (8, 1024)):
                with pytest.raises(KernelError, match="key of 8 bytes and a value of 512"):
                    bpf.map_lookup_elem(opened.fileno(), bytes(key), bytearray(value))
        with Map.open(f"{folder}/counts") as found:
            found[bytes(8)] = b"x" * 512
            assert list(found.items()) == [(bytes(8), b"x" * 512)]


@pytest.mark.parametrize(
    ("map_type", "key", "value", "entries", "room"),
    [
        (t.BPF_MAP_TYPE_HASH, 3, 5, 1, lambda: 5),
        (t.BPF_MAP_TYPE_PERCPU_ARRAY, 4, 12, 1, lambda: 16 * len(cpus.possible())),
        (t.BPF_MAP_TYPE_LRU_PERCPU_HASH, 2, 1, 64, lambda: 8 * len(cpus.possible())),
        (t.BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, lambda: 4),
        (t.BPF_MAP_TYPE_QUEUE, 0, 7, 1, lambda: 7),
    ],
)
def test_the_kernel_writes_exactly_as_much_as_was_counted(
    map_type: int, key: int, value: int, entries: int, room: Callable[[], int]
) -> None:
    """Oracle: what is behind the buffer stays, and all of the buffer is filled."""
    with bpf.map_create(map_type, key, value, entries) as made:
        sizes = read_sizes(made.fileno())
        assert sizes == (map_type, key, room())
        if map_type == t.BPF_MAP_TYPE_PROG_ARRAY:
            return
        bpf.map_update_elem(made.fileno(), bytes(key), b"\x01" * sizes.value)
        memory = bytearray(sizes.value) + bytearray(GUARD)
        # The raw command, behind the check: it has no idea of the guard.
        bpf.command(
            bpf.bpf_cmd.BPF_MAP_LOOKUP_ELEM,
            "map_elem",
            map_fd=made.fileno(),
            key=bytes(key) or None,
            value=memory,
        )
        assert memory.endswith(GUARD)
        size = sizes.value // len(cpus.possible()) if "PERCPU" in t(map_type).name else value
        assert [memory[at] for at in range(0, sizes.value, size)].count(0) == 0
