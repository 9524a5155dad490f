"""purebpf.load: what exists afterwards, and what does not when it fails."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import purebpf
from purebpf.syscall.backend import replaced as backend_replaced
from tests.support.host.backends import Interposer
from tests.support.patience import until

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"
COUNTER = DATA / "load_counter.bpf.o"
GETPRIORITY = {"x86_64": 140, "aarch64": 141}[os.uname().machine]
PRIME = 23
PACKET = bytes(64)


def call_getpriority(times: int) -> None:
    for _ in range(times):
        os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize("source", [COUNTER, str(COUNTER), COUNTER.read_bytes()], ids=type)
def test_a_path_or_bytes_will_do(source):
    with purebpf.load(source) as obj:
        assert list(obj.programs) == ["count_calls"]
        assert set(obj.maps) == {"calls", ".rodata", ".bss", ".data"}


@pytest.mark.needs("tracefs")
def test_system_calls_are_counted_exactly():
    spec = purebpf.read_object(COUNTER).set(target_pid=os.getpid())
    with purebpf.load(spec) as obj:
        (link,) = obj.attach()
        call_getpriority(PRIME)
        link.close()
        assert obj.maps["calls"][GETPRIORITY].total == PRIME
        assert obj.globals["calls_seen"] == sum(call.total for call in obj.maps["calls"].values())


@pytest.mark.needs("tracefs")
def test_a_global_written_while_the_program_runs_is_seen_by_it():
    spec = purebpf.read_object(COUNTER).set(target_pid=os.getpid(), step=0)
    with purebpf.load(spec) as obj:
        obj.attach()
        call_getpriority(PRIME)
        assert obj.globals["calls_seen"] == 0
        obj.globals["step"] = 1000
        call_getpriority(PRIME)
        assert obj.globals["calls_seen"] >= PRIME * 1000
        assert obj.globals["step"] == 1000


def test_constants_are_what_was_set_and_stay_so():
    with purebpf.load(purebpf.read_object(COUNTER).set(target_pid=41)) as obj:
        assert obj.globals["target_pid"] == 41
        with pytest.raises(purebpf.NotSupportedError, match=r"constant after load; use spec\.set"):
            obj.globals["target_pid"] = 42
        assert obj.globals["target_pid"] == 41


def test_variables_start_with_the_values_of_the_file():
    with purebpf.load(COUNTER) as obj:
        assert dict(obj.globals) == {"target_pid": 0, "calls_seen": 0, "step": 1}
        with pytest.raises(KeyError):
            obj.globals["no_such_variable"]


def test_globals_work_without_mapped_memory():
    spec = purebpf.read_object(COUNTER)
    no_mmap = Interposer(_refuse_mmapable_maps)
    with backend_replaced(no_mmap), purebpf.load(spec) as obj:
        assert obj.globals["step"] == 1
        obj.globals["step"] = 7
        assert obj.globals["step"] == 7


def _refuse_mmapable_maps(call):
    if call.command == "BPF_MAP_CREATE" and call.field("map_create", "map_flags") & 1 << 10:
        return 22
    return None


def test_optional_programs_are_loaded_only_when_asked_for():
    spec = purebpf.read_object(DATA / "load_refused.bpf.o")
    with purebpf.load(spec) as obj:
        assert not obj.programs
    with purebpf.load(spec.only("accepted")) as obj:
        assert list(obj.programs) == ["accepted"]


def test_static_contents_of_program_arrays_and_maps_of_maps():
    with purebpf.load(DATA / "load_tail.bpf.o") as obj:
        assert obj.programs["first"].test_run(PACKET).retval == 42
        assert obj.programs["empty_slot"].test_run(PACKET).retval == 3
        assert list(obj.maps["leaf"].values()) == [0, 0, 5, 0]


def test_a_program_array_without_its_program_has_an_empty_slot():
    spec = purebpf.read_object(DATA / "load_tail.bpf.o").only("first")
    with purebpf.load(spec) as obj:
        assert obj.programs["first"].test_run(PACKET).retval == 1


def test_a_program_array_is_full_as_long_as_a_descriptor_refers_to_it():
    with purebpf.load(DATA / "load_tail.bpf.o") as obj:
        first = purebpf.Program.from_id(obj.programs["first"].info.id)
        jumps = purebpf.Map.from_id(obj.maps["jumps"].info.id)
    with first:
        with jumps:
            assert first.test_run(PACKET).retval == 42, "the object is closed, the map is not"
        # The kernel empties the array, which `first` still has, when it finds the time.
        assert until(lambda: first.test_run(PACKET).retval == 1)


def test_maps_know_their_types_in_the_kernel():
    with purebpf.load(COUNTER) as obj:
        assert obj.programs["count_calls"].info.btf_id != 0
        assert obj.btf_problem == ""


def test_a_small_object_never_reads_the_kernels_btf(monkeypatch):
    def unexpected():
        raise AssertionError("read")

    monkeypatch.setattr("purebpf.loader.types.kernel_btf.kernel_btf", unexpected)
    with purebpf.load(COUNTER) as obj:
        assert obj.programs


@pytest.mark.needs("vmlinux_btf", "current_task_btf")
def test_co_re_matches_the_btf_it_is_given():
    spec = purebpf.read_object(DATA / "load_refused.bpf.o").only("missing_field")
    with pytest.raises(purebpf.VerifierError, match="no such field on this kernel"):
        purebpf.load(spec)
    with purebpf.load(spec, btf=spec.btf) as obj:  # its own types do have that field
        assert obj.programs


def test_nothing_works_after_close_and_closing_twice_is_harmless():
    obj = purebpf.load(COUNTER)
    program, link_free_map = obj.programs["count_calls"], obj.maps["calls"]
    obj.close()
    obj.close()
    assert obj.closed
    for use in (
        lambda: obj.maps,
        lambda: obj.programs,
        lambda: obj.globals,
        lambda: obj.links,
        obj.attach,
    ):
        with pytest.raises(ValueError, match="object 'load_counter' is closed"):
            use()
    with pytest.raises(ValueError, match="closed"):
        program.fileno()
    with pytest.raises(ValueError, match="closed"):
        link_free_map.fileno()
    assert "closed" in repr(obj)


@pytest.mark.needs("tracefs")
def test_closing_an_object_detaches_its_links():
    obj = purebpf.load(COUNTER)
    (link,) = obj.attach()
    assert obj.links == (link,)
    obj.close()
    assert link.closed


@pytest.mark.needs("tracefs")
def test_a_link_that_was_closed_is_no_longer_listed():
    with purebpf.load(COUNTER) as obj:
        (link,) = obj.attach()
        link.close()
        assert obj.links == ()


def test_a_forgotten_object_warns_and_closes():
    obj = purebpf.load(COUNTER)
    with pytest.warns(ResourceWarning, match="unclosed <Object load_counter: 1 programs, 4 maps>"):
        del obj


def test_foreign_code_is_refused():
    with pytest.raises(purebpf.NotSupportedError, match="big-endian"):
        purebpf.load(DATA / "elf_big_endian.bpf.o")


def test_an_unknown_section_is_refused_by_name():
    spec = purebpf.read_object(DATA / "load_refused.bpf.o").only("accepted")
    program = spec.programs["accepted"]
    odd = program._replace(section="mystery/x", type=0, sec_prefix="")
    with pytest.raises(
        purebpf.NotSupportedError, match=r"libbpf's table .* does not have section 'mystery/x'"
    ):
        purebpf.load(spec._replace(programs={"accepted": odd}))


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("tracepont/sched/sched_switch", "similar: tracepoint/sched/sched_switch"),
        ("?kprob/vfs_read", "similar: kprobe/vfs_read"),
        ("cgroup/conect4", "similar: cgroup/connect4"),
        ("classifer", "similar: classifier"),
        ("mystery/x", "; no similar name"),
    ],
)
def test_an_unknown_section_names_those_that_are_spelled_alike(section, told):
    spec = purebpf.read_object(DATA / "load_refused.bpf.o").only("accepted")
    odd = spec.programs["accepted"]._replace(section=section, type=0, sec_prefix="")
    with pytest.raises(purebpf.NotSupportedError, match=re.escape(told)):
        purebpf.load(spec._replace(programs={"accepted": odd}))


def test_a_map_may_be_given_instead_of_made():
    with purebpf.load(COUNTER) as first:
        calls = first.maps["calls"]
        with purebpf.load(COUNTER, maps={"calls": calls}) as second:
            assert second.maps["calls"].info.id == calls.info.id
            assert second.maps[".bss"].info.id != first.maps[".bss"].info.id
            calls[5] = {"total": 7, "last_cpu": 0}
            assert second.maps["calls"][5].total == 7
        assert calls[5].total == 7
        with pytest.raises(KeyError, match="unknown map 'nothing'; no similar name"):
            purebpf.load(COUNTER, maps={"nothing": calls})
        reason = "as 'calls': it has type ARRAY, not HASH, key_size 4, not 8, value_size 8, not 16"
        with pytest.raises(purebpf.NotSupportedError, match=reason):
            purebpf.load(COUNTER, maps={"calls": first.maps[".bss"]})


def test_maps_pinned_by_name_are_shared(bpffs):
    spec = purebpf.read_object(COUNTER)
    pinned = spec._replace(maps={**spec.maps, "calls": spec.maps["calls"]._replace(pinning=1)})
    with purebpf.load(pinned, pin_path=bpffs) as first:
        number = first.maps["calls"].info.id
    with purebpf.load(pinned, pin_path=bpffs) as second:
        assert second.maps["calls"].info.id == number
    with pytest.raises(purebpf.NotSupportedError, match="max_entries"):
        purebpf.load(pinned.resize(calls=3), pin_path=bpffs)


def test_constants_stay_with_programs_that_do_not_use_them():
    spec = purebpf.read_object(DATA / "load_attach.bpf.o").only("on_raw", "on_sample")
    with purebpf.load(spec) as obj:
        constants = obj.maps[".rodata"].info.id
        for program in obj.programs.values():
            assert constants in program.info.map_ids


@pytest.mark.needs("tracefs", "readelf")
def test_a_stack_is_a_tuple_of_addresses():
    spec = purebpf.read_object(DATA / "load_stacks.bpf.o").set(tgid=os.getpid())
    with purebpf.load(spec) as obj:
        obj.attach()
        os.getppid()
        stacks = dict(obj.maps["stacks"].items())
        number = next(iter(obj.maps["counts"]))
        assert stacks[number] == obj.maps["stacks"][number]
        assert 0 < len(stacks[number]) < 127
        assert all(address >> 63 for address in stacks[number])
        assert len(purebpf.Symbolizer().kernel_stack(stacks[number])) == len(stacks[number])
        frames = [frame for stack in obj.maps["files"].values() for frame in stack]
    assert {frame.status for frame in frames} <= {1, 2}
    found = {frame.build_id.hex() for frame in frames if frame.status == 1}
    assert found & set(map(build_id, mapped_files()))


def mapped_files() -> set[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[5] for line in lines if " r-xp " in line and "/" in line}


def build_id(path: str) -> str:
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False)
    return text.stdout.partition("Build ID: ")[2].partition("\n")[0]
