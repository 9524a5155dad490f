"""What each command puts into the attr, and what it makes of the answer."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest

from purebpf.abi.bpf import BPF_F_TOKEN_FD, bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.errors import KernelError
from purebpf.syscall import backend, bpf, command, token
from purebpf.syscall.command import BatchResult, Log
from tests.support.host.backends import answer_map_info

Answer = Callable[["Recorder"], int]


class Recorder:
    """A substitute to nowhere: keeps the attr of the last call and lets the test answer.

    Where `sizes` is set, there is a map behind every descriptor, with keys and values of so many
    bytes.
    """

    def __init__(self) -> None:
        self.sizes: tuple[int, int] | None = None
        self.answer: Answer = lambda _: 0
        self.command = -1
        self.attr = bytearray()
        self._address = 0

    def bpf(self, command: int, attr: backend.Attr, size: int) -> int:
        if command == bpf_cmd.BPF_OBJ_GET_INFO_BY_FD and self.sizes:
            return answer_map_info(attr, *self.sizes)
        self.command = command
        self._address = ctypes.addressof(attr)
        self.attr = bytearray(ctypes.string_at(attr, size))
        return self.answer(self)

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        raise AssertionError("no command of bpf(2)")

    def field(self, layout: str, name: str) -> Any:
        return ATTR[layout].unpack(self.attr)[name]

    def memory(self, layout: str, name: str, size: int) -> bytes:
        return ctypes.string_at(self.field(layout, name), size)

    def write(self, layout: str, name: str, value: int) -> None:
        """What the kernel does to a field of the caller's attr."""
        offset, code = ATTR[layout].fields[name]
        data = struct.pack("=" + code, value)
        ctypes.memmove(self._address + offset, data, len(data))

    def fill(self, layout: str, name: str, data: bytes) -> None:
        """What the kernel does to memory that a field points to."""
        ctypes.memmove(self.field(layout, name), data, len(data))


@pytest.fixture
def kernel() -> Iterator[Recorder]:
    recorder = Recorder()
    with backend.replaced(recorder):
        yield recorder


def some_fd(_: Recorder) -> int:
    return os.open("/dev/null", os.O_RDONLY)


OPENING = [
    call
    for call in vars(bpf).values()
    if getattr(call, "__annotations__", {}).get("return") == "Descriptor"
]
SOME = {"int": 1, "bytes": b"x", "str": "GPL"}


@pytest.mark.parametrize("call", OPENING, ids=lambda call: call.__name__)
def test_the_backend_knows_every_command_that_opens_something(kernel, call):
    kernel.answer = some_fd
    needed = [each for each in signature(call).parameters.values() if each.default is each.empty]
    call(*(SOME[each.annotation] for each in needed if each.kind is not each.VAR_KEYWORD)).close()
    assert backend._OPENING >> kernel.command & 1


def test_the_attr_is_exactly_the_fields_and_zero_everywhere_else(kernel):
    kernel.answer = some_fd
    bpf.map_create(1, 4, 8, 16, map_name=b"counts", map_flags=1).close()
    expected = struct.pack("=IIIII", 1, 4, 8, 16, 1) + bytes(8) + b"counts"
    assert kernel.command == bpf_cmd.BPF_MAP_CREATE
    assert bytes(kernel.attr) == expected.ljust(ATTR["map_create"].size, b"\0")


@pytest.mark.parametrize(
    ("call", "layout", "kind"),
    [
        (lambda: bpf.map_create(1, 4, 4, 1, map_flags=2), "map_create", "map"),
        (lambda: bpf.prog_load(1, bytes(8), "GPL", prog_flags=2), "prog_load", "prog"),
        (lambda: bpf.btf_load(b"btf", btf_flags=2), "btf_load", "btf"),
    ],
    ids=["map", "prog", "btf"],
)
def test_a_token_joins_the_flags_of_the_call(kernel, call, layout, kind):
    kernel.answer = some_fd
    with token.using(77):
        call().close()
    assert kernel.field(layout, f"{kind}_token_fd") == 77
    assert kernel.field(layout, f"{kind}_flags") == 2 | BPF_F_TOKEN_FD
    call().close()
    assert kernel.field(layout, f"{kind}_token_fd") == 0
    assert kernel.field(layout, f"{kind}_flags") == 2


def test_a_bytes_argument_is_passed_by_address_and_lives_through_the_call(kernel):
    kernel.sizes = (4, 8)
    kernel.answer = lambda at: at.fill("map_elem", "value", b"87654321") or 0
    value = bytearray(8)
    bpf.map_lookup_elem(5, b"key" + b"!", value, flags=4)
    assert kernel.field("map_elem", "map_fd") == 5
    assert kernel.field("map_elem", "flags") == 4
    assert value == b"87654321"

    keys = []
    kernel.answer = lambda at: keys.append(at.memory("map_elem", "key", 4)) or 0
    bpf.map_delete_elem(5, bytes(bytearray(b"made")))
    assert keys == [b"made"]


def test_no_key_is_a_null_pointer(kernel):
    kernel.sizes = (0, 6)
    bpf.map_update_elem(5, b"", b"pushed")
    assert kernel.field("map_elem", "key") == 0


def batch(call: Callable[..., BatchResult], keys: int, values: int, cursor: int = 4) -> BatchResult:
    return call(
        7,
        in_batch=None,
        out_batch=bytearray(cursor),
        keys=bytearray(keys),
        values=bytearray(values),
        count=2,
    )


@pytest.mark.parametrize(
    ("call", "command"),
    [
        (lambda: bpf.map_lookup_elem(7, bytes(4), bytearray(16)), "LOOKUP_ELEM"),
        (lambda: bpf.map_lookup_elem(7, bytes(3), bytearray(3072)), "LOOKUP_ELEM"),
        (lambda: bpf.map_lookup_elem(7, bytes(4), bytearray(4096)), "LOOKUP_ELEM"),
        (lambda: bpf.map_update_elem(7, bytes(4), bytes(16)), "UPDATE_ELEM"),
        (lambda: bpf.map_update_elem(7, b"", bytes(3072)), "UPDATE_ELEM"),
        (lambda: bpf.map_delete_elem(7, bytes(2)), "DELETE_ELEM"),
        (lambda: batch(bpf.map_lookup_batch, 8, 3072), "LOOKUP_BATCH"),
        (lambda: batch(bpf.map_lookup_batch, 4, 6144), "LOOKUP_BATCH"),
        (lambda: batch(bpf.map_lookup_batch, 8, 6144, 3), "LOOKUP_BATCH"),
        (
            lambda: batch(bpf.map_lookup_and_delete_batch, 8, 3072),
            "LOOKUP_AND_DELETE_BATCH",
        ),
        (lambda: bpf.map_update_batch(7, bytes(8), bytes(3072), 2), "UPDATE_BATCH"),
        (lambda: bpf.map_delete_batch(7, bytes(4), 2), "DELETE_BATCH"),
    ],
)
def test_a_buffer_that_does_not_fit_the_map_never_reaches_the_kernel(kernel, call, command):
    kernel.sizes = (4, 3072)
    with pytest.raises(KernelError, match=r"key of 4 bytes and a value of 3072") as caught:
        call()
    assert (caught.value.call, caught.value.errno) == (f"bpf(BPF_MAP_{command})", errno.EINVAL)
    assert kernel.command == -1


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: bpf.map_create(1, 4, 4, 1), "BPF_MAP_CREATE"),
        (lambda: bpf.map_freeze(3), "BPF_MAP_FREEZE"),
        (lambda: bpf.prog_load(1, bytes(8), "GPL"), "BPF_PROG_LOAD"),
        (lambda: bpf.btf_load(b"btf"), "BPF_BTF_LOAD"),
        (lambda: bpf.obj_get("/sys/fs/bpf/none"), "BPF_OBJ_GET"),
        (lambda: bpf.link_create(0, prog_fd=3), "BPF_LINK_CREATE"),
        (lambda: bpf.prog_test_run(3), "BPF_PROG_TEST_RUN"),
        (lambda: bpf.prog_get_next_id(0), "BPF_PROG_GET_NEXT_ID"),
        (lambda: bpf.prog_query(3, 0), "BPF_PROG_QUERY"),
        (lambda: bpf.obj_get_info_by_fd(3, bytearray(8)), "BPF_OBJ_GET_INFO_BY_FD"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_failure_names_the_command_and_carries_the_errno(kernel, call, name):
    kernel.answer = lambda _: -errno.EACCES
    with pytest.raises(KernelError) as caught:
        call()
    assert caught.value.call == f"bpf({name})"
    assert caught.value.errno == errno.EACCES
    assert isinstance(caught.value, OSError)


def test_programs_are_counted_in_instructions_and_the_licence_ends_with_a_nul(kernel):
    seen = []

    def answer(at: Recorder) -> int:
        seen.extend((at.memory("prog_load", "insns", 16), at.memory("prog_load", "license", 4)))
        return some_fd(at)

    kernel.answer = answer
    bpf.prog_load(5, b"0123456789abcdef", "GPL", prog_name=b"me", expected_attach_type=3).close()
    assert seen == [b"0123456789abcdef", b"GPL\0"]
    assert kernel.field("prog_load", "insn_cnt") == 2
    assert kernel.field("prog_load", "prog_name") == b"me".ljust(16, b"\0")
    assert kernel.field("prog_load", "expected_attach_type") == 3
    assert [kernel.field("prog_load", f"log_{name}") for name in ("level", "size", "buf")] == [
        0
    ] * 3


def test_the_log_of_a_refused_program_is_kept_with_the_size_it_wanted(kernel):
    def refuse(at: Recorder) -> int:
        at.fill("prog_load", "log_buf", b"R1 invalid\0")
        at.write("prog_load", "log_true_size", 4711)
        return -errno.ENOSPC

    kernel.answer = refuse
    log = Log(64, level=2)
    with pytest.raises(KernelError):
        bpf.prog_load(5, bytes(8), "GPL", log=log)
    assert (kernel.field("prog_load", "log_level"), kernel.field("prog_load", "log_size")) == (
        2,
        64,
    )
    assert log.text() == "R1 invalid"
    assert log.true_size == 4711


def test_the_log_of_refused_btf_is_kept_too(kernel):
    def refuse(at: Recorder) -> int:
        at.fill("btf_load", "btf_log_buf", b"Invalid magic\0")
        at.write("btf_load", "btf_log_true_size", 14)
        return -errno.EINVAL

    kernel.answer = refuse
    log = Log(64)
    with pytest.raises(KernelError):
        bpf.btf_load(b"no btf", log=log)
    assert (log.text(), log.true_size) == ("Invalid magic", 14)
    assert kernel.field("btf_load", "btf_size") == 6


@pytest.mark.parametrize("error", [0, errno.ENOENT, errno.ENOSPC, errno.EINVAL])
@pytest.mark.parametrize("call", [bpf.map_lookup_batch, bpf.map_lookup_and_delete_batch])
def test_a_batch_says_how_far_it_got_instead_of_raising(kernel, call, error):
    kernel.sizes = (1, 1)

    def answer(at: Recorder) -> int:
        at.write("batch", "count", 3)
        return -error

    kernel.answer = answer
    found = call(
        7, in_batch=None, out_batch=bytearray(4), keys=bytearray(8), values=bytearray(8), count=8
    )
    assert found == BatchResult(3, error)
    assert (kernel.field("batch", "map_fd"), kernel.field("batch", "in_batch")) == (7, 0)


def test_a_test_run_reports_what_the_kernel_wrote(kernel):
    def answer(at: Recorder) -> int:
        for name, value in (
            ("retval", 7),
            ("duration", 250),
            ("data_size_out", 14),
            ("ctx_size_out", 0),
        ):
            at.write("test", name, value)
        return 0

    kernel.answer = answer
    run = bpf.prog_test_run(3, data_in=bytes(14), data_out=bytearray(64), repeat=10, flags=1)
    assert run == command.TestRunResult(retval=7, duration_ns=250, data_size_out=14, ctx_size_out=0)
    sizes = [
        kernel.field("test", name) for name in ("data_size_in", "data_size_out", "repeat", "flags")
    ]
    assert sizes == [14, 64, 10, 1]
    assert kernel.field("test", "ctx_in") == 0


def test_next_ids_and_info_lengths_come_out_of_the_attr(kernel):
    kernel.answer = lambda at: at.write("get_id", "next_id", 42) or 0
    assert bpf.map_get_next_id(17) == 42
    assert kernel.field("get_id", "start_id") == 17
    kernel.answer = lambda at: at.write("info", "info_len", 80) or 0
    assert bpf.obj_get_info_by_fd(3, bytearray(104)) == 80
    assert kernel.field("info", "info_len") == 104


def test_paths_may_hold_bytes_that_are_not_utf8(kernel):
    seen = []
    kernel.answer = lambda at: seen.append(at.memory("obj", "pathname", 5)) or 0
    bpf.obj_pin(3, os.fsdecode(b"/a\xff/"))
    assert seen == [b"/a\xff/\0"]


def test_a_field_that_does_not_exist_is_a_mistake_of_the_caller(kernel):
    with pytest.raises(KeyError):
        bpf.map_create(1, 4, 4, 1, max_entriez=5)


def test_the_real_backend_is_back_after_an_exception():
    with pytest.raises(ZeroDivisionError), backend.replaced(Recorder()):
        raise ZeroDivisionError
    assert backend.current.bpf(-1, (ctypes.c_char * 8)(), 8) in (-errno.EINVAL, -errno.EPERM)


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        (b"", b""),
        (b"on_open", b"on_open"),
        (b"exactly_15_char", b"exactly_15_char"),
        (b"more_than_15_characters", b"more_than_15_ch"),
        (b"a.b-c d/e", b"a.b_c_d_e"),
        ("größe".encode(), b"gr____e"),
    ],
)
def test_names_are_cut_and_cleaned_as_the_kernel_wants_them(kernel, name, accepted) -> None:
    kernel.answer = some_fd
    bpf.map_create(1, 4, 8, 1, map_name=name).close()
    assert kernel.field("map_create", "map_name") == accepted.ljust(16, b"\0")
    bpf.prog_load(1, bytes(8), "GPL", prog_name=name).close()
    assert kernel.field("prog_load", "prog_name") == accepted.ljust(16, b"\0")
