"""Attaching: exact counts of a known workload, cookies, and every way it can end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_link_type, bpf_prog_type
from purebpf.loader.features import features, probes
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data" / "load_attach.bpf.o")
GETPRIORITY = {"x86_64": 140, "aarch64": 141}[os.uname().machine]
PRIME = 23

tracepoints = pytest.mark.needs("tracefs")
btf_tracepoints = pytest.mark.needs("vmlinux_btf")
samples = pytest.mark.needs("perf_event")
links = pytest.mark.needs("perf_event_links")


def mine(*programs: str) -> purebpf.ObjectSpec:
    return SPEC.set(target_pid=os.getpid(), target_call=GETPRIORITY).only(*programs)


def call_getpriority(times: int = PRIME) -> None:
    for _ in range(times):
        os.getpriority(os.PRIO_PROCESS, 0)


def falls_silent(obj: purebpf.Object, counter: str) -> bool:
    """Whether calls are soon no longer counted: what was pinned ends after an RCU grace period."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        before = obj.globals[counter]
        call_getpriority()
        if obj.globals[counter] == before:
            return True
        time.sleep(0.005)
    return False


CALLS = [
    pytest.param("on_tracepoint", "tracepoint_hits", marks=tracepoints),
    pytest.param("on_raw", "raw_hits"),
    pytest.param("on_btf", "btf_hits", marks=btf_tracepoints),
]


@pytest.mark.parametrize(("program", "counter"), CALLS)
def test_every_call_is_counted_while_attached_and_none_after(program, counter):
    with purebpf.load(mine(program)) as obj:
        call_getpriority()
        with obj.programs[program].attach() as link:
            call_getpriority()
            assert obj.globals[counter] == PRIME
        call_getpriority()
        assert obj.globals[counter] == PRIME
        assert link.closed
        obj.programs[program].attach().detach()
        call_getpriority()
        assert obj.globals[counter] == PRIME


@tracepoints
def test_a_child_is_counted_by_its_pid():
    code = "import os, sys; sys.stdin.read(1); [os.getpriority(0, 0) for _ in range(23)]"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        spec = SPEC.set(target_pid=child.pid, target_call=GETPRIORITY).only("on_tracepoint")
        with purebpf.load(spec) as obj:
            obj.attach()
            child.communicate(b"x")
            assert obj.globals["tracepoint_hits"] == PRIME


@btf_tracepoints
@tracepoints
@links
def test_the_object_attaches_what_says_where_and_leaves_the_rest():
    spec = mine("on_tracepoint", "on_raw", "on_btf", "on_sample", "on_packet", "nowhere")
    with purebpf.load(spec) as obj:
        links = obj.attach()
        assert [link.info.type for link in links] == [
            bpf_link_type.BPF_LINK_TYPE_PERF_EVENT,
            bpf_link_type.BPF_LINK_TYPE_RAW_TRACEPOINT,
            bpf_link_type.BPF_LINK_TYPE_RAW_TRACEPOINT,
        ]
        call_getpriority()
        assert obj.globals["tracepoint_hits"] == PRIME
        assert obj.globals["raw_hits"] == PRIME
        assert obj.globals["btf_hits"] == PRIME


def test_a_program_that_cannot_be_attached_undoes_those_before_it():
    with purebpf.load(mine("on_raw", "on_probe_of_nothing")) as obj:
        with pytest.raises(
            (purebpf.AttachError, purebpf.NotSupportedError), match=r"kprobe|no_such"
        ):
            obj.attach()
        assert obj.links == ()
        call_getpriority()
        assert obj.globals["raw_hits"] == 0


def test_a_kind_that_cannot_be_attached_is_named():
    of_a_newer_kernel = 99
    with (
        probes.load_program(bpf_prog_type.BPF_PROG_TYPE_XDP) as descriptor,
        purebpf.Program(descriptor.duplicate(), "new", of_a_newer_kernel) as program,
        pytest.raises(purebpf.NotSupportedError, match="does not attach type 99 programs"),
    ):
        program.attach()


@pytest.mark.needs("syscall_programs")
def test_a_syscall_program_is_run_not_attached():
    run = Path(__file__).parents[3] / "data" / "load_run.bpf.o"
    with (
        purebpf.load(run) as obj,
        pytest.raises(purebpf.NotSupportedError, match=r"test_run\(\)"),
    ):
        obj.programs["multiply"].attach()


@samples
@links
def test_a_perf_event_program_runs_at_each_sample():
    with (
        purebpf.load(mine("on_sample")) as obj,
        purebpf.PerfEvent.software("page-faults", pid=0, sample_period=1) as event,
    ):
        with obj.programs["on_sample"].attach(event) as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_PERF_EVENT
            event.disable()  # or reading one of the two may fault before the other is read
            before = event.read().value, obj.globals["sample_hits"]
            event.enable()
            touch_pages(PRIME)
            event.disable()
            after = event.read().value, obj.globals["sample_hits"]
        faults, hits = (new - old for old, new in zip(before, after, strict=True))
        assert faults >= PRIME
        assert hits == faults
        assert event.read().value >= after[0]  # the event is its owner's, and still open


def touch_pages(count: int) -> None:
    import mmap

    with mmap.mmap(-1, count * mmap.PAGESIZE) as memory:
        for page in range(count):
            memory[page * mmap.PAGESIZE] = 1


@samples
@links
def test_attaching_enables_a_disabled_event_unless_enable_is_false():
    with (
        purebpf.load(mine("on_sample")) as obj,
        purebpf.PerfEvent.software("page-faults", pid=0, sample_period=1, disabled=1) as event,
    ):
        with obj.programs["on_sample"].attach(event, enable=False):
            touch_pages(PRIME)
            assert obj.globals["sample_hits"] == 0
        with obj.programs["on_sample"].attach(event):
            touch_pages(PRIME)
            assert obj.globals["sample_hits"] >= PRIME


@samples
def test_a_perf_event_program_needs_an_event():
    with purebpf.load(mine("on_sample")) as obj:
        with pytest.raises(TypeError, match="target required: a perf event"):
            obj.programs["on_sample"].attach()
        with (
            purebpf.PerfEvent.software("page-faults", pid=0, sample_period=1) as event,
            obj.programs["on_sample"].attach(event),
            pytest.raises(purebpf.AttachError, match="already has a program"),
        ):
            obj.programs["on_sample"].attach(event)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("on_tracepoint_cookie", marks=[tracepoints, links]),
        pytest.param("on_raw_cookie", marks=pytest.mark.needs("raw_tracepoint_cookies")),
    ],
)
def test_a_program_reads_the_cookie_of_its_link(program):
    with purebpf.load(mine(program)) as obj:
        with obj.programs[program].attach(cookie=0xC00C1E_5EED):
            call_getpriority(1)
        assert obj.globals["cookie_seen"] == 0xC00C1E_5EED


@btf_tracepoints
@pytest.mark.needs("function_cookies")
def test_a_btf_tracepoint_takes_a_cookie_and_no_other_target():
    with purebpf.load(mine("on_btf")) as obj:
        with obj.programs["on_btf"].attach(cookie=3):
            call_getpriority()
        assert obj.globals["btf_hits"] == PRIME
        with pytest.raises(TypeError, match="takes no target: its target was fixed"):
            obj.programs["on_btf"].attach("sched_switch")


@tracepoints
def test_another_target_than_the_section_says():
    with purebpf.load(mine("nowhere", "on_raw")) as obj:
        with pytest.raises(TypeError, match="target required: a tracepoint"):
            obj.programs["nowhere"].attach()
        with obj.programs["nowhere"].attach("sched:sched_switch") as link:
            assert "sched/sched_switch" in link.what
        with obj.programs["on_raw"].attach("sched_switch") as link:
            assert "sched_switch" in link.what


@tracepoints
def test_tracepoints_that_are_not_there():
    with purebpf.load(mine("on_tracepoint", "on_raw")) as obj:
        with pytest.raises(
            purebpf.AttachError, match=r"ENOENT.*not have this tracepoint"
        ) as caught:
            obj.programs["on_tracepoint"].attach("sched/no_such_thing")
        assert caught.value.errno == errno.ENOENT
        with pytest.raises(purebpf.AttachError, match=r"ENOENT.*not have this tracepoint"):
            obj.programs["on_raw"].attach("no_such_thing")
        for malformed in ("sched", "a/b/c", "/b", "a/"):
            with pytest.raises(ValueError, match="'category/name'"):
                obj.programs["on_tracepoint"].attach(malformed)


@tracepoints
def test_a_program_that_reads_beyond_the_record_of_a_tracepoint():
    reason = r"EACCES. the program reads beyond the record, which has 12 bytes. compare its struct"
    with (
        purebpf.load(mine("on_tracepoint")) as obj,
        pytest.raises(purebpf.AttachError, match=reason) as caught,
    ):
        obj.programs["on_tracepoint"].attach("irq/softirq_raise")
    assert caught.value.fix.endswith("/sys/kernel/tracing/events/irq/softirq_raise/format")


@btf_tracepoints
def test_a_btf_tracepoint_that_is_not_there_cannot_even_be_loaded():
    with pytest.raises(purebpf.NotSupportedError, match="not have tracepoint 'no_such_tracepoint'"):
        purebpf.load(mine("on_missing"))


@tracepoints
def test_the_same_program_twice_on_a_tracepoint():
    with (
        purebpf.load(mine("on_tracepoint")) as obj,
        obj.programs["on_tracepoint"].attach(),
        pytest.raises(purebpf.AttachError, match=r"EEXIST.*already has a program"),
    ):
        obj.programs["on_tracepoint"].attach()


@tracepoints
@links
def test_a_pinned_link_outlives_its_object_until_it_is_detached(bpffs):
    path = bpffs / "link"
    with purebpf.load(mine("on_tracepoint")) as obj:
        (link,) = obj.attach()
        number = link.info.id
        link.pin(path)
        link.close()
        call_getpriority()
        assert obj.globals["tracepoint_hits"] == PRIME
        with purebpf.Link.open(path) as again:
            assert again.info.id == number
            assert again.info.program_id == obj.programs["on_tracepoint"].info.id
        path.unlink()
        assert falls_silent(obj, "tracepoint_hits")


def test_detach_removes_the_pins_too(bpffs):
    with purebpf.load(mine("on_raw")) as obj:
        (link,) = obj.attach()
        link.pin(bpffs / "one")
        link.pin(bpffs / "two")
        (bpffs / "two").unlink()
        link.detach()
        link.detach()
        assert not (bpffs / "one").exists()
        assert falls_silent(obj, "raw_hits")


def test_a_program_is_not_a_link(bpffs):
    with purebpf.load(mine("on_raw")) as obj:
        obj.programs["on_raw"].pin(bpffs / "program")
        with pytest.raises(purebpf.KernelError, match="is a bpf-prog, not a link"):
            purebpf.Link.open(bpffs / "program")


def test_a_closed_link_says_so():
    with purebpf.load(mine("on_raw")) as obj:
        (link,) = obj.attach()
        link.close()
        link.close()
        for use in (link.fileno, lambda: link.info, lambda: link.pin("/nowhere")):
            with pytest.raises(ValueError, match="raw tracepoint sys_enter: the link is closed"):
                use()


def test_a_dropped_link_detaches_and_the_warning_says_what_to_do():
    with purebpf.load(mine("on_raw")) as obj:
        with pytest.warns(ResourceWarning, match="unclosed <Link program 'on_raw'") as warned:
            obj.programs["on_raw"].attach()  # as in libbpf, where the program stays attached
        call_getpriority()
        assert obj.globals["raw_hits"] == 0
    (warning,) = warned
    assert "so the program is detached. Keep the Link in a variable" in str(warning.message)
    assert warning.filename == __file__


def test_a_dropped_link_that_is_pinned_stays_attached(bpffs):
    with purebpf.load(mine("on_raw")) as obj:
        link = obj.programs["on_raw"].attach()
        link.pin(bpffs / "link")
        with pytest.warns(ResourceWarning, match="^unclosed <Link program 'on_raw'[^:]*$"):
            del link
        call_getpriority()
        assert obj.globals["raw_hits"]
        (bpffs / "link").unlink()


# Kernels before 5.15 have no bpf_link for perf events.


def before_perf_event_links() -> Interposer:
    return Interposer(lambda call: errno.EINVAL if call.command == "BPF_LINK_CREATE" else None)


@pytest.fixture
def _ask_anew():
    features.forget()
    yield
    features.forget()


@pytest.mark.usefixtures("_ask_anew")
@tracepoints
def test_a_tracepoint_without_a_bpf_link():
    with replaced(before_perf_event_links()), purebpf.load(mine("on_tracepoint")) as obj:
        with obj.programs["on_tracepoint"].attach() as link:
            call_getpriority()
            assert obj.globals["tracepoint_hits"] == PRIME
            with pytest.raises(purebpf.NotSupportedError, match="without a bpf_link"):
                _ = link.info
            with pytest.raises(purebpf.NotSupportedError, match="without a bpf_link"):
                link.pin("/nowhere")
        call_getpriority()
        assert obj.globals["tracepoint_hits"] == PRIME


@pytest.mark.usefixtures("_ask_anew")
@samples
def test_a_perf_event_without_a_bpf_link():
    with (
        replaced(before_perf_event_links()),
        purebpf.load(mine("on_sample")) as obj,
        purebpf.PerfEvent.software("page-faults", pid=0, sample_period=1) as event,
    ):
        with obj.programs["on_sample"].attach(event):
            touch_pages(PRIME)
        hits = obj.globals["sample_hits"]
        assert hits >= PRIME
        touch_pages(PRIME)
        assert obj.globals["sample_hits"] == hits
        event.enable()  # the event was disabled, not closed


@pytest.mark.usefixtures("_ask_anew")
@samples
def test_a_cookie_needs_a_bpf_link():
    with (
        replaced(before_perf_event_links()),
        purebpf.load(mine("on_sample")) as obj,
        purebpf.PerfEvent.software("page-faults", pid=0, sample_period=1) as event,
        pytest.raises(purebpf.NotSupportedError, match="a cookie for a perf event"),
    ):
        obj.programs["on_sample"].attach(event, cookie=1)


def test_a_cookie_for_a_raw_tracepoint_needs_linux_6_10():
    def decide(call):
        raw = call.command == "BPF_RAW_TRACEPOINT_OPEN"
        return errno.EINVAL if raw and call.field("raw_tracepoint", "cookie") else None

    with (
        replaced(Interposer(decide)),
        purebpf.load(mine("on_raw")) as obj,
        pytest.raises(purebpf.NotSupportedError, match=r"needs Linux 6\.10"),
    ):
        obj.programs["on_raw"].attach(cookie=1)


@links
@pytest.mark.parametrize(("program", "counter"), CALLS)
def test_a_link_of_a_kind_that_cannot_be_updated_says_so(program: str, counter: str):
    with (
        purebpf.load(mine(program)) as obj,
        obj.programs[program].attach() as link,
    ):
        with pytest.raises(
            purebpf.NotSupportedError, match=r"^updating .*: links of this kind keep"
        ):
            link.update(obj.programs[program])
        call_getpriority()
        assert obj.globals[counter] == PRIME
