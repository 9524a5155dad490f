"""Refused programs: the error says which line, which C line and why; the whole log is kept."""

from __future__ import annotations

import errno
import signal
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.features import features
from purebpf.loader.host import memlock, privilege
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"
SPEC = purebpf.read_object(DATA / "load_refused.bpf.o")


def refusal(name: str, substitute: Interposer | None = None, **options) -> purebpf.VerifierError:
    with replaced(substitute or Interposer()), pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(SPEC.only(name), **options)
    return caught.value


@pytest.mark.parametrize(
    ("program", "number", "line", "source"),
    [
        (
            "null_pointer",
            errno.EACCES,
            "R0 invalid mem access 'map_value_or_null'",
            "load_refused.bpf.c:20: return *value; // never checked",
        ),
        (
            "endless",
            errno.EINVAL,
            "infinite loop detected at insn 2",
            "load_refused.bpf.c:29: turn = turn;",
        ),
        pytest.param(
            "in_subprogram",
            errno.EACCES,
            "R1 invalid mem access 'mem_or_null'",
            "load_refused.bpf.c:45: return *number; // may be NULL: the function is global",
            marks=pytest.mark.needs("memory_arguments"),
        ),
        (
            "outside_context",
            errno.EACCES,
            "invalid bpf_context access off=4096 size=4",
            "load_refused.bpf.c:59: return *(volatile int *)(ctx + 4096);",
        ),
    ],
)
def test_the_error_shows_the_line_that_decided(program, number, line, source):
    error = refusal(program)
    assert (error.program, error.errno) == (program, number)
    assert (error.line, error.source) == (line, source)
    assert error.line in str(error)
    assert error.source in str(error)
    assert error.log.count("\n") > 3
    assert isinstance(error, OSError)


@pytest.mark.needs("vmlinux_btf", "current_task_btf")
def test_a_poisoned_relocation_is_named():
    error = refusal("missing_field")
    assert error.poisoned.startswith("struct task_struct.no_such_member: no such field")
    assert error.source == "load_refused.bpf.c:82: return task->no_such_member;"
    assert error.poisoned in str(error)


def test_the_error_reads_as_a_sentence():
    assert str(refusal("null_pointer")) == (
        "program 'null_pointer': bpf(BPF_PROG_LOAD) failed with EACCES. "
        "R0 invalid mem access 'map_value_or_null', "
        "at load_refused.bpf.c:20: return *value; // never checked. "
        "check `value` for NULL before line 20: bpf_map_lookup_elem() may return NULL"
    )


def test_a_log_larger_than_the_first_buffer_is_fetched_whole():
    substitute = Interposer()
    error = refusal("long_story", substitute)
    assert error.line in {f"R1 invalid mem access '{it}'" for it in ("scalar", "inv")}  # Linux 5.18
    assert error.source == "load_refused.bpf.c:70: return *(volatile int *)(sum + 1);"
    assert len(error.log) > 1 << 20
    assert error.log.startswith(("func#0", "0: ", "arg#0", "reg type"))
    sizes = [
        call.field("prog_load", "log_size")
        for call in substitute.calls
        if call.command == "BPF_PROG_LOAD"
    ]
    assert sizes[:2] == [0, 1 << 16]
    assert sizes == sorted(sizes)
    assert error.errno == errno.EACCES  # not the ENOSPC of the log


def test_no_log_is_asked_for_when_the_program_is_accepted():
    substitute = Interposer()
    with replaced(substitute), purebpf.load(SPEC.only("accepted")) as obj:
        assert obj.programs["accepted"].log == ""
    loads = [call for call in substitute.calls if call.command == "BPF_PROG_LOAD"]
    assert [call.field("prog_load", "log_level") for call in loads] == [0]


@pytest.mark.parametrize("level", [1, 2, 4])
def test_the_log_of_an_accepted_program_can_be_kept(level):
    with purebpf.load(SPEC.only("accepted"), log_level=level) as obj:
        assert "processed 2 insns" in obj.programs["accepted"].log


def test_nothing_is_loaded_when_one_program_is_refused():
    substitute = Interposer()
    with replaced(substitute), pytest.raises(purebpf.VerifierError, match="'endless'"):
        purebpf.load(SPEC.only("accepted", "endless"))
    assert substitute.commands.count("BPF_PROG_LOAD") == 3  # accepted, refused, refused with a log


def test_interrupted_verification_is_tried_again():
    interruptions = iter([errno.EAGAIN] * 4)
    substitute = Interposer(
        lambda call: next(interruptions, None) if call.command == "BPF_PROG_LOAD" else None
    )
    with replaced(substitute), purebpf.load(SPEC.only("accepted")) as obj:
        assert obj.programs
    assert substitute.commands.count("BPF_PROG_LOAD") == 5


def test_a_process_with_a_timer_can_load_what_takes_long_to_verify():
    spec = purebpf.read_object(DATA / "load_run.bpf.o").only("long_verified")
    substitute = Interposer()
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        with replaced(substitute), purebpf.load(spec) as obj:
            assert obj.programs
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert substitute.commands.count("BPF_PROG_LOAD") == 5  # the timer did get in the way
    assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_endless_interruption_is_an_error():
    substitute = Interposer(lambda call: errno.EAGAIN if call.command == "BPF_PROG_LOAD" else None)
    with replaced(substitute), pytest.raises(purebpf.KernelError, match=r"'accepted'.*EAGAIN"):
        purebpf.load(SPEC.only("accepted"))
    assert substitute.commands.count("BPF_PROG_LOAD") == 5


def test_permission_is_explained_when_the_verifier_was_not_asked(monkeypatch):
    host = privilege.read_host()._replace(capabilities=0, seccomp=0)
    monkeypatch.setattr(privilege, "read_host", lambda: host)
    substitute = Interposer(lambda call: errno.EPERM if call.command == "BPF_PROG_LOAD" else None)
    error = refusal("accepted", substitute)
    assert error.errno == errno.EPERM
    assert "lacks CAP_BPF and CAP_PERFMON" in str(error)
    assert "sudo" in error.fix


@pytest.mark.needs("memory_by_cgroup")
def test_a_memory_limit_is_only_blamed_where_it_limits_bpf(monkeypatch):
    host = privilege.read_host()._replace(memlock=65536, seccomp=0)
    monkeypatch.setattr(privilege, "read_host", lambda: host)
    monkeypatch.setattr(memlock, "raise_memlock", lambda: False)
    features.forget()
    substitute = Interposer(
        lambda call: (
            errno.EPERM
            if call.command == "BPF_PROG_LOAD" and call.field("prog_load", "prog_name").strip(b"\0")
            else None
        )
    )
    assert "RLIMIT_MEMLOCK" not in str(refusal("accepted", substitute))
    features.forget()


def test_a_program_type_this_kernel_has_not_is_said_to_be_missing(monkeypatch):
    no = features.Feature("program type RAW_TRACEPOINT", supported=False, reason="EINVAL")
    monkeypatch.setattr(features, "have_program_type", lambda _: no)
    substitute = Interposer(lambda call: errno.EINVAL if call.command == "BPF_PROG_LOAD" else None)
    error = refusal("accepted", substitute)
    assert "this kernel does not support these programs (program type RAW_TRACEPOINT: no" in str(
        error
    )
