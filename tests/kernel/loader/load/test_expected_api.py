"""What users of the library expected to find: said by name, not by numbers and offsets."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

import purebpf
from purebpf import asm
from purebpf.abi.bpf import bpf_map_type

DATA = Path(__file__).parents[3] / "data"
CALLS = purebpf.read_object(DATA / "stream_calls.bpf.o")
PRIME = 13


def returns_mark() -> purebpf.ObjectSpec:
    """A program on packets that returns their mark."""
    code = asm.Program("mark", "tc")
    code.load(asm.R0, asm.R1, 8, 4)  # struct __sk_buff: mark
    code.exit()
    return asm.build("marks", [code])


@pytest.mark.needs("bpf", "vmlinux_btf")
def test_a_context_is_given_by_name_and_comes_back_as_a_record() -> None:
    with purebpf.load(returns_mark()) as obj:
        result = obj.programs["mark"].test_run(bytes(64), ctx={"mark": 7})
        assert result.retval == 7
        assert result.ctx.mark == 7
        assert result.ctx.wire_len == 64
        assert result.ctx.priority == 0
        again = obj.programs["mark"].test_run(bytes(64), ctx={"mark": 0xFFFFFFFF})
    assert (again.retval, again.retval_signed) == (0xFFFFFFFF, -1)


@pytest.mark.needs("bpf", "vmlinux_btf", "live_frames")
def test_a_context_of_xdp_has_the_size_of_the_packet() -> None:
    spec = purebpf.read_object(DATA / "load_run.bpf.o").only("flip")
    with purebpf.load(spec) as obj:
        result = obj.programs["flip"].test_run(bytes(64), ctx={"rx_queue_index": 0})
    assert result.retval_signed == 3
    assert result.ctx.data_end == 64


@pytest.mark.needs("bpf", "vmlinux_btf", "live_frames")
def test_a_context_of_a_socket_lookup_is_given_by_name() -> None:
    code = asm.Program("choose", "sk_lookup")
    out = code.label()
    code.load(asm.R2, asm.R1, 60, 4)  # struct bpf_sk_lookup: local_port
    code.load(asm.R3, asm.R1, 40, 4)  # local_ip4, in the order of the network
    code.move(asm.R0, 0)  # SK_DROP
    code.jump("!=", asm.R2, 4711, out)
    code.jump("!=", asm.R3, int.from_bytes(b"\x7f\0\0\1", sys.byteorder), out)
    code.move(asm.R0, 1)  # SK_PASS
    code.place(out)
    code.exit()
    local = int.from_bytes(b"\x7f\0\0\1", sys.byteorder)
    flow = {"family": socket.AF_INET, "protocol": socket.IPPROTO_TCP, "local_ip4": local}
    with purebpf.load(asm.build("lookup", [code])) as obj:
        program = obj.programs["choose"]
        passed = program.test_run(ctx={**flow, "local_port": 4711})
        dropped = program.test_run(ctx={**flow, "local_port": 4712})
        with pytest.raises(purebpf.SchemaError, match="does not have a field 'local_prot'"):
            program.test_run(ctx={**flow, "local_prot": 4711})
    assert (passed.retval, dropped.retval) == (1, 0)
    assert (passed.ctx.local_port, passed.ctx.family) == (4711, socket.AF_INET)
    assert passed.ctx.cookie == 0, "the program chose no socket"


@pytest.mark.needs("bpf", "vmlinux_btf")
def test_a_misspelt_field_of_a_context_is_named() -> None:
    with (
        purebpf.load(returns_mark()) as obj,
        pytest.raises(purebpf.SchemaError, match=r"does not have a field 'marc'; it has len"),
    ):
        obj.programs["mark"].test_run(bytes(64), ctx={"marc": 7})


@pytest.mark.needs("bpf")
def test_a_context_without_a_type_is_given_as_bytes() -> None:
    spec = purebpf.read_object(DATA / "load_run.bpf.o").only("raw_cpu")
    with (
        purebpf.load(spec) as obj,
        pytest.raises(purebpf.SchemaError, match="RAW_TRACEPOINT programs is given as bytes"),
    ):
        obj.programs["raw_cpu"].test_run(ctx={"args": (1,)})


@pytest.mark.needs("bpf")
def test_types_of_an_object_decode_by_name() -> None:
    with purebpf.load(CALLS) as obj:
        moment = obj.types["moment"]
        raw = struct.pack("=QIIII", 5, 6, 7, 1, 0)
        assert moment.size == len(raw)
        assert moment.decode(raw).nr == 7
        assert obj.types["struct moment"].encode((5, 6, 7, 1, 0)) == raw
        assert "moment" in obj.types
        with pytest.raises(KeyError, match="unknown type 'momment'; similar: moment"):
            obj.types["momment"]
    with pytest.raises(ValueError, match="is closed"):
        assert obj.types


@pytest.mark.needs("bpf", "tracefs")
def test_two_rings_are_read_by_one_loop() -> None:
    spec = CALLS.set(tgid=os.getpid())
    with purebpf.load(spec) as one, purebpf.load(spec) as two:
        readers = [obj.maps["moments"].reader() for obj in (one, two)]
        for obj in (one, two):
            obj.programs["on_enter"].attach().close()
        links = [obj.programs["on_enter"].attach() for obj in (one, two)]
        for _ in range(PRIME):
            os.getppid()
        for link in links:
            link.close()
        number = 110 if os.uname().machine == "x86_64" else 173
        counts = dict.fromkeys(readers, 0)
        seen = []
        for reader, moment in purebpf.poll(*readers, timeout=0):
            seen.append(reader)
            counts[reader] += moment.nr == number
        assert [counts[reader] for reader in readers] == [PRIME, PRIME]
        for reader in readers:
            reader.close()
        with pytest.raises(ValueError, match="closed"):
            next(purebpf.poll(*readers))


@pytest.mark.needs("bpf", "tracefs")
def test_maps_are_polled_by_their_own_readers() -> None:
    with purebpf.load(CALLS.set(tgid=os.getpid())) as one:
        moments = one.maps["moments"]
        with one.programs["on_enter"].attach():
            os.getppid()
        records = list(purebpf.poll(moments, timeout=0))
        assert {source for source, _ in records} == {moments}
        number = 110 if os.uname().machine == "x86_64" else 173
        assert sum(moment.nr == number for _, moment in records) == 1
        assert list(moments.read(timeout=0)) == []


@pytest.mark.needs("bpf", "bpffs", "vmlinux_btf")
def test_a_pinned_link_stays_and_gets_the_next_program(bpffs: Path) -> None:
    path = bpffs / "tasks"
    spec = purebpf.read_object(DATA / "attach_iterators.bpf.o").only("list_tasks")
    with purebpf.load(spec) as one, purebpf.load(spec) as two:
        with one.programs["list_tasks"].attach(pin=path) as link:
            number = link.info.id
        with two.programs["list_tasks"].attach(pin=path) as link:
            assert link.info.id == number
            assert link.info.program_id == two.programs["list_tasks"].info.id


@pytest.mark.needs("bpf", "tracefs")
def test_a_misspelt_tracepoint_names_those_that_are_similar() -> None:
    code = asm.Program("on", "tracepoint")
    code.move(asm.R0, 0)
    code.exit()
    spec = asm.build("on", [code]).target(on="sched/sched_swich")
    with (
        purebpf.load(spec) as obj,
        pytest.raises(purebpf.AttachError, match=r"similar: .*sched/sched_switch"),
    ):
        obj.attach()


def test_a_spec_says_where_programs_attach() -> None:
    spec = CALLS.target(on_enter="sched_switch")
    assert spec.programs["on_enter"].attach_target == "sched_switch"
    assert CALLS.programs["on_enter"].attach_target == "sys_enter"
    with pytest.raises(KeyError, match="similar: on_enter"):
        CALLS.target(on_entry="x")


def test_a_spec_configures_maps_and_programs() -> None:
    spec = CALLS.configure("moments", type="lru_hash", key_size=4, max_entries=PRIME)
    assert spec.maps["moments"].type == bpf_map_type.BPF_MAP_TYPE_LRU_HASH
    assert spec.maps["moments"].max_entries == PRIME
    assert not CALLS.configure("on_enter", autoload=False).programs["on_enter"].autoload
    with pytest.raises(TypeError, match="map moments has no setting 'size'; it has"):
        CALLS.configure("moments", size=1)
    with pytest.raises(purebpf.SchemaError, match="unknown map type 'hashh'"):
        CALLS.configure("moments", type="hashh")
    with pytest.raises(KeyError, match="similar: on_enter"):
        CALLS.configure("on_entry", flags=1)
