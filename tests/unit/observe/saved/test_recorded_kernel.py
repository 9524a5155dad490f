"""Kernel addresses of a recording have names only if this kernel provably is the recorded one."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from purebpf.observe.saved import perf_data_loader, recorded_kernel
from purebpf.observe.saved.recorded_kernel import Origin, RecordedKernel
from purebpf.results import Labels, Profile
from purebpf.results.build.loaded_code import LoadedCode, LoadedRange, pack_ksymbol
from purebpf.results.formats import perf_data
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown
from purebpf.wire.perf_data import KERNEL
from purebpf.wire.perf_encode import HOST_KERNEL
from purebpf.wire.perf_records import Mmap, Mmap2

TEXT, MODULE, PROGRAM = 0xFFFFFFFF81000000, 0xFFFFFFFFC0100000, 0xFFFFFFFFC0400000
MINE, OTHER = b"\x11" * 20, b"\x22" * 20
MOVED = 0x3000000
"""How much higher the running kernel was loaded than the recorded one."""


class RunningKernel:
    """The names of the kernel that runs: its own text, one module and one BPF program."""

    def kernel_stack(self, addresses: Sequence[int]) -> list[Frame | Unknown]:
        return [self._name(address) for address in addresses]

    def _name(self, at: int) -> Frame | Unknown:
        for start, name, module in (
            (TEXT + MOVED, "do_idle", "kernel"),
            (MODULE + 0x5000, "xfs_read", "xfs"),
            (PROGRAM, "bpf_prog_other", "[bpf]"),
        ):
            if start <= at < start + 0x1000:
                return Frame(name, at - start, module, Address(at), "kernel")
        return Unknown(Reason.NO_KERNEL_FUNCTION, "kernel", Address(at), "kernel")


def origin(**changes: object) -> Origin:
    here = os.uname()
    facts = Origin(here.nodename, here.release, here.machine, {KERNEL: MINE, "[xfs]": OTHER})
    return facts._replace(**changes)


@pytest.fixture(autouse=True)
def _running(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{TEXT + MOVED:x} T _text\n".encode()
    modules = f"xfs 99 1 - Live {MODULE + 0x5000:#x}\n".encode()
    monkeypatch.setattr(recorded_kernel, "kernel_build_id", lambda: MINE)
    monkeypatch.setattr(recorded_kernel, "read_build_id", lambda _path: OTHER)
    monkeypatch.setattr(recorded_kernel.proc, "kallsyms", lambda: text)
    monkeypatch.setattr(recorded_kernel.proc, "modules", lambda: modules)


def mapping(name: str = f"{KERNEL}_text") -> Mmap:
    return Mmap(HOST_KERNEL, 0, TEXT, 0x1000000, TEXT, name, False)


_MAPPING = mapping()


def loaded(*, program: bool = True) -> LoadedCode:
    code = LoadedCode()
    code.add_mapping(
        Mmap(HOST_KERNEL, 0, MODULE, 0x2000, 0, "/lib/modules/6.1/kernel/xfs.ko.xz", False)
    )
    if program:
        code.add_symbol(
            pack_ksymbol(LoadedRange(PROGRAM, PROGRAM + 0x80, "bpf_prog_mine", "[bpf]"))
        )
    return code


def names(
    kernel: Origin,
    at: Sequence[int],
    where: Mmap | Mmap2 | None = _MAPPING,
    *,
    program: bool = True,
) -> list[str]:
    reader = RecordedKernel(RunningKernel(), kernel, where, loaded(program=program))  # type: ignore[arg-type]
    stack = reader.stack(at)
    assert [entry.address for entry in stack] == list(at)  # those of the file, whatever was asked
    return [entry.name if isinstance(entry, Frame) else entry.reason.name for entry in stack]


def test_the_same_build_names_its_functions_wherever_it_was_loaded() -> None:
    assert names(origin(), [TEXT + 0x10, TEXT + 0x20]) == ["do_idle", "do_idle"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"release": "5.4.0-42-foreign"}, "OTHER_KERNEL"),
        ({"arch": "mips"}, "OTHER_KERNEL"),
        ({"build_ids": {KERNEL: OTHER}}, "OTHER_KERNEL"),
        ({"build_ids": {}}, "UNPROVEN_KERNEL"),
    ],
)
def test_another_build_has_no_names_but_those_that_the_file_has(
    changes: dict[str, object], reason: str
) -> None:
    at = [TEXT + 0x10, MODULE + 0x10, PROGRAM + 0x10]
    assert names(origin(**changes), at) == [reason, reason, "bpf_prog_mine"]


def test_a_build_id_in_the_kernels_own_mapping_counts() -> None:
    """perf record --buildid-mmap writes it there."""
    where = Mmap2(HOST_KERNEL, 0, TEXT, 0x1000000, TEXT, f"{KERNEL}_text", 0, 0, 0, MINE, 5, 0)
    assert names(origin(build_ids={}), [TEXT + 0x10], where) == ["do_idle"]
    other = where._replace(build_id=OTHER)
    assert names(origin(build_ids={}), [TEXT + 0x10], other) == ["OTHER_KERNEL"]


@pytest.mark.parametrize("where", [None, mapping(KERNEL), mapping(f"{KERNEL}_gone")])
def test_a_kernel_without_a_place_has_no_names(where: Mmap | None) -> None:
    assert names(origin(), [TEXT + 0x10], where) == ["UNPLACED_KERNEL"]


def test_a_module_of_the_same_build_is_named_where_it_is_now() -> None:
    assert names(origin(), [MODULE + 0x10]) == ["xfs_read"]


def test_a_module_of_another_build_has_no_names() -> None:
    for build_ids in ({KERNEL: MINE}, {KERNEL: MINE, "[xfs]": MINE}):
        assert names(origin(build_ids=build_ids), [MODULE + 0x10]) == ["NOT_RECORDED"]


def test_a_program_of_another_boot_is_not_named_by_the_one_that_is_there_now() -> None:
    assert names(origin(), [PROGRAM - MOVED + 0x10], program=False) == ["NOT_RECORDED"]
    assert names(origin(), [PROGRAM + 0x10]) == ["bpf_prog_mine"]


def test_an_address_that_two_programs_had_has_no_name() -> None:
    code = loaded()
    code.add_symbol(pack_ksymbol(LoadedRange(PROGRAM, PROGRAM + 0x40, "bpf_prog_second", "[bpf]")))
    reader = RecordedKernel(RunningKernel(), origin(), mapping(), code)  # type: ignore[arg-type]
    (entry,) = reader.stack([PROGRAM + 0x10])
    assert isinstance(entry, Unknown)
    assert entry.reason is Reason.NOT_RECORDED


def test_a_caller_at_the_end_of_a_program_belongs_to_it() -> None:
    assert names(origin(), [TEXT + 0x10, PROGRAM + 0x80])[1] == "bpf_prog_mine"


def library(build_id: str, **about: object) -> bytes:
    """A recording of one frame in a file that is here, and one in a BPF program."""
    path = os.path.realpath("/proc/self/exe")
    user = Frame("f", 0, path, Address(0x401234), "user", build_id, FileOffset(0x1234))
    program = Frame("bpf_prog_kept", 4, "[bpf]", Address(PROGRAM + 4), "kernel")
    profile = Profile("saved", about={"event": "cpu-clock", **about})
    profile.add((user,), (program,), 1, Labels("x", 5))
    return perf_data.document(profile)


def reasons(data: bytes) -> set[str]:
    profile = perf_data_loader.of_bytes(data, "a.data").profile
    frames = (entry for row in profile.rows() for entry in row.user or ())
    return {entry.reason.name for entry in frames if isinstance(entry, Unknown)}


def test_files_of_another_machine_count_by_build_id_only() -> None:
    here = os.uname()
    mine = {"host": here.nodename, "kernel": f"{here.release} {here.machine}"}
    assert "OTHER_MACHINE" not in reasons(library("", **mine))
    assert reasons(library("", **(mine | {"host": "elsewhere"}))) == {"OTHER_MACHINE"}
    assert reasons(library("", **(mine | {"kernel": f"5.4.0 {here.machine}"}))) == {"OTHER_MACHINE"}
    assert reasons(library("")) == {"OTHER_MACHINE"}
    assert reasons(library("ab" * 20, **mine)) == {"REPLACED"}


def test_a_saved_program_keeps_its_name_on_any_machine() -> None:
    data = library("", host="elsewhere", kernel="5.4.0 x86_64", kernel_build_id="33" * 20)
    profile = perf_data_loader.of_bytes(data, "a.data").profile
    assert [entry.name for row in profile.rows() for entry in row.kernel or ()] == ["bpf_prog_kept"]
    assert "5.4.0" in profile.hints[0]


def test_a_perf_map_here_does_not_name_code_of_another_machine(tmp_path: Path) -> None:
    pid = (1 << 22) + 12345  # above the largest that there can be
    path = Path(f"/tmp/perf-{pid}.map")  # noqa: S108
    path.write_text("500000 1000 wrong_name\n")
    try:
        frame = Frame("f", 0, "[jit]", Address(0x500010), "user")
        profile = Profile("saved", about={"event": "cpu-clock", "host": "elsewhere"})
        profile.add((frame,), (), 1, Labels("x", pid))
        assert reasons(perf_data.document(profile)) == {"OTHER_MACHINE"}
    finally:
        path.unlink()


def test_a_short_ksymbol_record_is_refused() -> None:
    record = pack_ksymbol(LoadedRange(1, 2, "x", "[bpf]"))
    with pytest.raises(Exception, match="ksymbol"):
        LoadedCode().add_symbol(record._replace(body=struct.pack("=Q", 1)))
