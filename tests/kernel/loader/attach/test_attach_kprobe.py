"""Probes and trampolines: every way to watch one system call counts it exactly, and ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_link_type
from purebpf.btf.types.kinds import Kind
from purebpf.loader.attach import kprobe_multi
from purebpf.loader.perf import probe_event

DATA = Path(__file__).parents[3] / "data"
SPEC = purebpf.read_object(DATA / "attach_probes.bpf.o")
PRIME = 31
NICE_0 = 20
"""What the system call returns for a nice value of 0: 20 less the value."""

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")
kprobes = pytest.mark.needs("kprobes")
fprobe = pytest.mark.needs("kprobe_multi")
trampolines = pytest.mark.needs("trampolines")
many = pytest.mark.needs("tracing_multi")


def call_getpriority(times: int = PRIME) -> None:
    for _ in range(times):
        os.getpriority(os.PRIO_PROCESS, 0)


@contextmanager
def loaded(*programs: str, own_tgid: int = 0) -> Iterator[purebpf.Object]:
    with purebpf.load(SPEC.set(own_tgid=own_tgid or os.getpid()).only(*programs)) as obj:
        yield obj


CALLED = """
#include <unistd.h>
__attribute__((noinline)) void called(void) { asm volatile(""); }
int main(void) { for (char c; read(0, &c, 1) == 1; write(1, &c, 1)) called(); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls `called` for each byte that it copies from its input to its output."""
    path = tmp_path_factory.mktemp("called") / "program"
    command = ["gcc", "-x", "c", "-", "-O1", "-w", "-o", str(path)]
    subprocess.run(command, check=True, input=CALLED, text=True)
    return path


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """`program`, once it runs."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, bufsize=0, **pipes) as process:
        copied(process, 1)
        yield process
        process.kill()


def copied(process: subprocess.Popen[bytes], count: int = PRIME) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(count):
        process.stdin.write(b".")
        assert process.stdout.read(1) == b"."


class Caller:
    """Another process, which calls on request."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def call(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


@contextmanager
def caller() -> Iterator[Caller]:
    code = f"import os\nwhile input() == '':\n for _ in range({PRIME}):\n  os.getpriority(0, 0)"
    command = [sys.executable, "-S", "-c", f"{code}\n print('done', flush=True)"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        yield Caller(process)
        process.kill()


WATCHERS = [
    *(pytest.param(name, marks=kprobes) for name in ("kprobe", "kretprobe")),
    *(pytest.param(name, marks=kprobes) for name in ("ksyscall", "kretsyscall")),
    *(pytest.param(name, marks=fprobe) for name in ("multi", "multi_return")),
    *(pytest.param(name, marks=trampolines) for name in ("fentry", "fexit")),
    *(pytest.param(name, marks=many) for name in ("fentries", "fexits")),
    *("uprobe", "uretprobe"),
    pytest.param("uprobes", marks=pytest.mark.needs("uprobe_multi")),
]


@pytest.mark.parametrize("way", WATCHERS)
def test_every_call_is_counted_while_attached_and_none_after(way: str):
    with loaded(f"on_{way}") as obj:
        call_getpriority()
        with obj.programs[f"on_{way}"].attach():
            call_getpriority()
        call_getpriority()
        seen = obj.globals["seen"]
        assert getattr(seen, way) == PRIME
        if "ret" in way or way == "fexit":
            in_libc = way == "uretprobe"
            nice = os.getpriority(os.PRIO_PROCESS, 0)
            expected = nice if in_libc else NICE_0 - nice
            assert seen.returned & 0xFFFFFFFF == expected & 0xFFFFFFFF  # an int, of a register


@pytest.mark.parametrize(
    ("way", "kind", "times"),
    [
        pytest.param("session", 8, 2, marks=pytest.mark.needs("kprobe_session")),
        pytest.param("fsession", 2, 2, marks=pytest.mark.needs("tracing_session")),
        pytest.param("fsessions", 15, 2, marks=many),
        pytest.param("uprobe_session", 12, 2, marks=pytest.mark.needs("uprobe_session")),
    ],
)
def test_a_session_sees_both_ends_of_a_call(way: str, kind: int, times: int):
    with loaded(f"on_{way}") as obj:
        with obj.programs[f"on_{way}"].attach() as link:
            assert link.info.type == kind
            call_getpriority()
        assert getattr(obj.globals["seen"], way) == PRIME * times


@pytest.mark.needs("function_cookies")
@pytest.mark.parametrize(
    "way",
    [
        pytest.param("kprobe", marks=kprobes),
        pytest.param("multi", marks=fprobe),
        pytest.param("fentry", marks=trampolines),
        pytest.param("fentries", marks=many),
        "uprobe",
        pytest.param("uprobes", marks=pytest.mark.needs("uprobe_multi")),
    ],
)
def test_cookies_reach_the_program(way: str):
    with loaded(f"on_{way}") as obj, obj.programs[f"on_{way}"].attach(cookie=0xC00C1E):
        call_getpriority(1)
        assert obj.globals["seen"].cookie == 0xC00C1E


@pytest.mark.needs("function_cookies")
@pytest.mark.parametrize(
    ("way", "prefix"),
    [
        pytest.param("multi", "__x64_sys_", marks=fprobe),
        pytest.param("fentries", "__x64_sys_", marks=many),
        pytest.param("uprobes", "libc.so.6:", marks=pytest.mark.needs("uprobe_multi")),
    ],
)
def test_each_function_may_have_its_cookie(way: str, prefix: str):
    with loaded(f"on_{way}") as obj:
        program = obj.programs[f"on_{way}"]
        with program.attach({f"{prefix}getpriority": 7, f"{prefix}setpriority": 11}) as link:
            assert "(2 functions)" in link.what
            nice = os.getpriority(os.PRIO_PROCESS, 0)
            assert obj.globals["seen"].cookie == 7
            os.setpriority(os.PRIO_PROCESS, 0, nice)
            assert obj.globals["seen"].cookie == 11
        with pytest.raises(TypeError, match="a mapping has a cookie for each function"):
            program.attach({f"{prefix}getpriority": 7}, cookie=11)
        with pytest.raises(ValueError, match="at least one function is required"):
            program.attach({})


@pytest.mark.needs("uprobe_multi")
def test_several_functions_of_a_file_are_named(program: Path):
    with loaded("on_uprobes") as obj:
        uprobes = obj.programs["on_uprobes"]
        names = ["libc.so.6:getpriority", "libc.so.6:setpriority", "libc.so.6:get?riority"]
        with uprobes.attach(names) as link:
            assert "(2 functions)" in link.what
            call_getpriority()
        assert obj.globals["seen"].uprobes == PRIME
        with pytest.raises(ValueError, match="a link takes one file"):
            uprobes.attach(["libc.so.6:getpriority", f"{program}:called"])


@many
def test_many_functions_are_named_or_matched():
    with loaded("on_fentries") as obj:
        program = obj.programs["on_fentries"]
        with program.attach(["__x64_sys_getpriority", "__x64_sys_setpriority"]) as link:
            assert "(2 functions)" in link.what
            call_getpriority(PRIME - 1)
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
        assert obj.globals["seen"].fentries == PRIME + 1
        with pytest.raises(purebpf.AttachError, match="no traceable kernel function matches"):
            program.attach("no_such_function*")
        with pytest.raises(ValueError, match="at least one function is required"):
            program.attach([])
        with pytest.raises(purebpf.NotSupportedError, match="the module is not loaded"):
            program.attach("no_such_module:*")


@pytest.mark.needs("no_tracing_multi")
def test_a_kernel_without_links_for_many_functions_says_so():
    with pytest.raises(purebpf.VerifierError):
        purebpf.load(SPEC.only("on_fentries"))


@trampolines
def test_a_program_decides_what_a_function_returns():
    with loaded("on_fmod_ret") as obj:
        with obj.programs["on_fmod_ret"].attach(), pytest.raises(PermissionError):
            os.sched_getscheduler(0)
        os.sched_getscheduler(0)
        assert obj.globals["seen"].fmod_ret == 1


@pytest.mark.needs("bpf_lsm")
def test_a_program_forbids_what_its_hook_is_about():
    with loaded("on_lsm") as obj:
        with obj.programs["on_lsm"].attach() as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_TRACING
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*is already attached there"):
                obj.programs["on_lsm"].attach()
            with pytest.raises(PermissionError):
                os.sched_getscheduler(0)
        os.sched_getscheduler(0)
        assert obj.globals["seen"].lsm == 1


@kprobes
def test_places_that_cannot_be_probed():
    with loaded("on_kprobe") as obj:
        program = obj.programs["on_kprobe"]
        with pytest.raises(
            purebpf.AttachError, match=r"no_such_function.*does not have this function"
        ):
            program.attach("no_such_function")
        with pytest.raises(purebpf.AttachError, match=r"start of an instruction|nothing can be"):
            program.attach("__x64_sys_getpriority+0xfffff")
        with pytest.raises(ValueError, match="'a b' is not a kernel function"):
            program.attach("a b")


def test_a_pattern_is_refused_with_the_section_that_takes_patterns():
    with (
        loaded("on_kprobe") as obj,
        pytest.raises(ValueError, match=r'need SEC\("kprobe.multi"\)'),
    ):
        obj.programs["on_kprobe"].attach("vfs_*")


@kprobes
def test_a_function_may_be_chosen_when_attaching():
    with loaded("on_kprobe") as obj:
        with obj.programs["on_kprobe"].attach("__x64_sys_getppid"):
            call_getpriority()
            os.getppid()
        assert obj.globals["seen"].kprobe == 1
        with obj.programs["on_kprobe"].attach(returns=True):
            call_getpriority(1)
        assert obj.globals["seen"].kprobe == 2


@fprobe
def test_a_pattern_means_the_functions_that_can_be_traced():
    names = ["__x64_sys_getpriority", "__x64_sys_setpriority"]
    lines = [line.split() for line in Path("/proc/kallsyms").read_text().splitlines()]
    expected = sorted(int(line[0], 16) for line in lines if line[2] in names)
    assert kprobe_multi.matching("__x64_sys_?etpriority") == expected
    with loaded("on_multi") as obj:
        program = obj.programs["on_multi"]
        with program.attach(names) as link:
            assert "(2 functions)" in link.what
            call_getpriority(1)
        assert obj.globals["seen"].multi == 1
        with pytest.raises(purebpf.AttachError, match="no traceable kernel function matches"):
            program.attach("no_such_*")
        with pytest.raises(ValueError, match="at least one function is required"):
            program.attach([])
        with pytest.raises(
            purebpf.AttachError, match=r"no_such.*cannot trace one of the functions"
        ):
            program.attach(["__x64_sys_getpriority", "no_such_function"])


def test_files_and_functions_that_are_not_there():
    with loaded("on_uprobe") as obj:
        program = obj.programs["on_uprobe"]
        with pytest.raises(purebpf.AttachError, match=r"file libnothing\.so does not exist in /"):
            program.attach("libnothing.so:f")
        with pytest.raises(
            purebpf.AttachError, match=r"libc\.so\.6 does not have a function 'no_such'"
        ):
            program.attach("libc.so.6:no_such")
        for nothing in ("nothing", ""):
            with pytest.raises(ValueError, match=f"'{nothing}' is not a place in a file"):
                program.attach(nothing)


ONE_OR_MANY = pytest.mark.parametrize(
    "way", ["uprobe", pytest.param("uprobes", marks=pytest.mark.needs("uprobe_multi"))]
)


@pytest.mark.needs("gcc", "mount_namespace")
@ONE_OR_MANY
def test_a_file_of_another_mount_namespace_is_not_ours_of_that_name(
    program: Path, tmp_path: Path, way: str
):
    file = tmp_path / "program"
    shutil.copy(program, file)
    hide = f"mount -t tmpfs none {tmp_path} && cp {program} {file} && exec {file}"
    with (
        running("unshare", "--mount", "sh", "-c", hide) as process,
        loaded(f"on_{way}", own_tgid=process.pid) as obj,
    ):
        with obj.programs[f"on_{way}"].attach(f"{file}:called"):
            copied(process)
        assert getattr(obj.globals["seen"], way) == 0
        with obj.programs[f"on_{way}"].attach(f"/proc/{process.pid}/root{file}:called"):
            copied(process)
        assert getattr(obj.globals["seen"], way) == PRIME


@pytest.mark.needs("gcc")
@ONE_OR_MANY
def test_a_file_that_was_deleted_is_found_by_its_process(program: Path, tmp_path: Path, way: str):
    file = tmp_path / "program"
    shutil.copy(program, file)
    with running(file) as process, loaded(f"on_{way}", own_tgid=process.pid) as obj:
        file.unlink()
        with obj.programs[f"on_{way}"].attach(f"/proc/{process.pid}/exe:called"):
            copied(process)
        assert getattr(obj.globals["seen"], way) == PRIME


@ONE_OR_MANY
def test_an_indirect_function_is_not_a_place_to_count_calls(way: str):
    with loaded(f"on_{way}") as obj:
        for name in ("strlen", "strlen@GLIBC_2.2.5", "memcpy"):  # memcpy@GLIBC_2.2.5 is code
            said = rf"'{name}' of /.*libc\.so\.6 is an indirect function"
            with pytest.raises(purebpf.AttachError, match=said):
                obj.programs[f"on_{way}"].attach(f"libc.so.6:{name}")


def test_a_uprobe_is_at_one_place():
    with loaded("on_uprobe") as obj, pytest.raises(ValueError, match=r"functions, .*uprobe\.multi"):
        obj.programs["on_uprobe"].attach("libc.so.6:?etpriority")


@ONE_OR_MANY
def test_a_uprobe_of_one_process_or_of_every_one(way: str):
    with caller() as child, loaded(f"on_{way}", own_tgid=child.pid) as obj:
        program = obj.programs[f"on_{way}"]
        for others in (0, os.getpid()):
            with program.attach(pid=others):
                call_getpriority()
                child.call()
            assert getattr(obj.globals["seen"], way) == 0
        with pytest.raises((ValueError, purebpf.AttachError), match=r"-2|process does not exist"):
            program.attach(pid=-2)
        with program.attach(pid=child.pid):
            child.call()
        assert getattr(obj.globals["seen"], way) == PRIME
        with program.attach():
            child.call()
        assert getattr(obj.globals["seen"], way) == 2 * PRIME
    with loaded(f"on_{way}") as obj, obj.programs[f"on_{way}"].attach(pid=0):
        call_getpriority(3)
        assert getattr(obj.globals["seen"], way) == 3


@pytest.mark.needs("no_kprobes")
def test_a_kernel_without_kprobes_says_so():
    with loaded("on_kprobe") as obj:
        with pytest.raises(
            purebpf.NotSupportedError,
            match=r"not have the kprobe PMU, .* not have kprobe_events .CONFIG_",
        ):
            obj.programs["on_kprobe"].attach()
        assert not probe_event.has_syscall_wrapper()


def test_the_wrapper_of_system_calls_is_found_where_there_is_one():
    if probe_event.has_syscall_wrapper():
        assert purebpf.kernel_btf().find("__x64_sys_bpf", Kind.FUNC)


@pytest.mark.parametrize("cookie", [-1, 1 << 64])
@ONE_OR_MANY
def test_a_cookie_has_64_bits(way: str, cookie: int):
    with loaded(f"on_{way}") as obj, pytest.raises(ValueError, match=str(cookie)):
        obj.programs[f"on_{way}"].attach(cookie=cookie)
