"""A loaded program: what the kernel says about it, running it, pinning it."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_prog_type
from purebpf.loader.programs import statistics
from purebpf.loader.programs.program import Program
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"
RUN = purebpf.read_object(DATA / "load_run.bpf.o")
PRIME = 37


@pytest.fixture
def run():
    with purebpf.load(RUN.only("flip", "raw_cpu")) as obj:
        yield obj


@pytest.mark.needs("syscall_programs")
def test_a_syscall_program_changes_its_context():
    with purebpf.load(RUN.only("multiply")) as obj:
        result = obj.programs["multiply"].test_run(ctx=struct.pack("=IIQ", 6, 7, 0))
    assert result.retval == 7
    assert struct.unpack("=IIQ", result.ctx) == (6, 7, 42)
    assert result.data == b""


def test_a_packet_program_changes_its_packet(run):
    packet = bytes(range(64))
    result = run.programs["flip"].test_run(packet, repeat=PRIME)
    assert result.retval == 3  # XDP_TX
    assert result.data[1:] == packet[1:]
    assert result.data[0] == (0xFF if PRIME % 2 else 0)
    assert result.ctx == b""


@pytest.mark.needs("live_frames")
def test_a_packet_program_with_a_context(run):
    context = struct.pack("=6I", 0, 64, 0, 0, 0, 0)  # struct xdp_md: data_end is 64
    result = run.programs["flip"].test_run(bytes(64), ctx=context)
    assert result.retval == 3
    assert result.ctx == context


def test_a_raw_tracepoint_program_runs_on_the_cpu_that_test_run_names(run):
    last = max(os.sched_getaffinity(0))
    result = run.programs["raw_cpu"].test_run(ctx=struct.pack("=QQ", 5, 0), cpu=last)
    assert result.retval == 5000 + last


@pytest.mark.needs("live_frames")
@pytest.mark.parametrize("packet", [b"", b"short"])
def test_too_short_a_packet_is_the_kernels_einval(run, packet):
    said = rf"'flip': .*BPF_PROG_TEST_RUN.*EINVAL.*XDP.*14 bytes, not {len(packet)}.*data=bytes\(64"
    with pytest.raises(purebpf.KernelError, match=said):
        run.programs["flip"].test_run(packet)


def test_what_else_does_not_suit_a_program_is_named(run):
    with pytest.raises(purebpf.KernelError, match=r"'raw_cpu': .*EINVAL.*a .*RAW_TRACEPOINT"):
        run.programs["raw_cpu"].test_run(b"a packet that is long enough")


def test_a_program_that_cannot_be_run_on_request_says_so():
    with (
        purebpf.load(DATA / "load_attach.bpf.o") as obj,
        pytest.raises(purebpf.NotSupportedError, match="cannot test-run BPF_PROG_TYPE_TRACEPOINT"),
    ):
        obj.programs["on_tracepoint"].test_run()


def test_an_interrupted_run_is_repeated(run):
    interruptions = iter([errno.EINTR, errno.EINTR])
    substitute = Interposer(
        lambda call: next(interruptions, None) if call.command == "BPF_PROG_TEST_RUN" else None
    )
    with replaced(substitute):
        result = run.programs["flip"].test_run(bytes(64))
    assert result.data[0] == 0xFF
    assert substitute.commands.count("BPF_PROG_TEST_RUN") == 3


def test_runs_are_counted_while_statistics_are_on(run):
    program = run.programs["flip"]
    with statistics.run_time():
        before = program.info
        for _ in range(PRIME):
            program.test_run(bytes(64))
        after = program.info
    assert after.run_cnt - before.run_cnt == PRIME
    assert after.run_time_ns > before.run_time_ns
    assert after.recursion_misses == 0


def test_statistics_that_the_kernel_does_not_keep():
    substitute = Interposer(lambda call: errno.EINVAL)
    with replaced(substitute), pytest.raises(purebpf.NotSupportedError, match="bpf_stats_enabled"):
        statistics.run_time()


def test_info_has_what_the_kernel_says_of_a_program():
    with purebpf.load(DATA / "load_counter.bpf.o") as obj:
        program = obj.programs["count_calls"]
        info = program.info
        assert info.type == bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT
        assert info.name == "count_calls"
        assert info.gpl_compatible
        assert info.uid == os.getuid()
        assert info.load_time_ns > 0
        if info.verified_insns:  # Linux 5.16
            assert info.verified_insns > 40
        assert len(info.tag) == 16
        assert set(info.map_ids) == {each.info.id for each in obj.maps.values()}
        assert len(program.xlated()) == info.xlated_size > 0
        assert program.xlated()[-8] == 0x95  # exit


@pytest.mark.needs("bpftool")
def test_bpftool_sees_the_same_program():
    with purebpf.load(DATA / "load_counter.bpf.o") as obj:
        program = obj.programs["count_calls"]
        shown = subprocess.run(
            ["bpftool", "-j", "prog", "show", "id", str(program.info.id)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        dumped = subprocess.run(
            [
                "bpftool",
                "prog",
                "dump",
                "xlated",
                "id",
                str(program.info.id),
                "file",
                "/dev/stdout",
            ],
            check=True,
            capture_output=True,
        ).stdout
        assert f'"tag":"{program.info.tag}"' in shown
        assert '"name":"count_calls"' in shown
        assert f'"btf_id":{program.info.btf_id}' in shown
        assert dumped == program.xlated()


def test_a_pinned_program_outlives_its_object(bpffs):
    path = bpffs / "flip"
    with purebpf.load(RUN.only("flip", "raw_cpu")) as obj:
        number = obj.programs["flip"].info.id
        obj.programs["flip"].pin(path)
        with pytest.raises(purebpf.KernelError, match="EEXIST"):
            obj.programs["raw_cpu"].pin(path)
    with Program.open(path) as again:
        assert again.info.id == number
        assert again.type == bpf_prog_type.BPF_PROG_TYPE_XDP
        assert again.name == "flip"
        assert again.test_run(bytes(64)).retval == 3  # XDP_TX
    with pytest.raises(purebpf.KernelError, match="ENOENT"):
        Program.open(bpffs / "nothing")


def test_a_map_is_not_a_program(bpffs):
    with purebpf.load(DATA / "load_counter.bpf.o") as obj:
        obj.maps["calls"].pin(bpffs / "calls")
        with pytest.raises(purebpf.KernelError, match="a bpf-map, not a program"):
            Program.open(bpffs / "calls")


def test_a_closed_program_says_so(run):
    program = run.programs["flip"]
    program.close()
    program.close()
    assert program.closed
    for use in (program.fileno, lambda: program.fd, lambda: program.info, program.xlated):
        with pytest.raises(ValueError, match="program 'flip' is closed"):
            use()
    with pytest.raises(ValueError, match="program 'flip' is closed"):
        program.test_run()


def test_a_forgotten_program_warns_and_closes():
    from purebpf.loader.features import probes

    program = Program(probes.load_program(1), "forgotten", 1)
    with pytest.warns(ResourceWarning, match="unclosed <Program 'forgotten'"):
        del program


SOCKETS = purebpf.read_object(DATA / "net_socket.bpf.o")
LOOKUP = struct.Struct("=QII44xI8x")
"""struct bpf_sk_lookup: cookie, family, protocol, local port."""
SO_COOKIE = 57


@pytest.mark.needs("live_frames")
def test_a_context_may_be_shorter_than_the_kernels_and_comes_back_whole(run):
    # struct xdp_md: all 24 bytes come back, and data_end, which is the packet's
    result = run.programs["flip"].test_run(bytes(64), ctx=struct.pack("=II", 0, 64))
    assert result.retval == 3
    assert struct.unpack("=6I", result.ctx)[:2] == (0, 64)


@pytest.mark.needs("live_frames")
def test_a_lookup_tells_the_socket_that_was_found():
    with (
        purebpf.load(SOCKETS.only("steer").set(steered=4711)) as obj,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        obj.maps["sockets"][0] = server
        asked = LOOKUP.pack(0, socket.AF_INET, socket.IPPROTO_TCP, 4711)
        result = obj.programs["steer"].test_run(ctx=asked)
        (cookie,) = struct.unpack("=Q", server.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
        assert LOOKUP.unpack(result.ctx) == (cookie, *LOOKUP.unpack(asked)[1:])


def test_a_packet_may_be_any_bytes(run):
    flip = run.programs["flip"]
    for packet in (memoryview(bytes(64)), memoryview(bytes(64)).cast("I"), bytearray(64)):
        assert flip.test_run(packet).data == b"\xff" + bytes(63)
    with pytest.raises(TypeError, match="bytes-like"):
        flip.test_run("packet")


@pytest.mark.needs("live_frames")
def test_a_run_that_the_kernel_refuses_names_the_program(run):
    said = r"'flip': .*E2BIG\. .*batch than 256 frames"
    with pytest.raises(purebpf.KernelError, match=said):
        run.programs["flip"].test_run(bytes(64), live_frames=True, batch_size=257)


def test_paths_may_be_bytes_and_have_no_nul(bpffs):
    with purebpf.load(RUN.only("flip"), pin_path=os.fsencode(bpffs)) as obj:
        program, path = obj.programs["flip"], bpffs / "flip"
        program.pin(os.fsencode(path))
        Program.open(os.fsencode(path)).close()
        with pytest.raises(ValueError, match="NUL"):
            program.pin(f"{path}2\0")
        with pytest.raises(
            purebpf.KernelError, match="names in a bpf file system cannot have dots"
        ):
            program.pin(f"{path}.o")
    assert [each.name for each in bpffs.iterdir() if "debug" not in each.name] == ["flip"]


@pytest.mark.parametrize("level", [-1, 16, 1 << 40, "1"])
def test_a_log_level_is_one_that_there_is(level):
    with pytest.raises(ValueError, match=f"log_level must .*, not {level!r}"):
        purebpf.load(RUN.only("flip"), log_level=level)
