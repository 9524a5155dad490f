"""Static probes: a program at each place of one, and the arguments it finds there."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.features import features
from purebpf.loader.load import kconfig
from tests.support.programs.children import in_child

DATA = Path(__file__).parents[3] / "data"
PRIME = 7
FORMS = (
    *(-2, 254, -2, 0xFFFE, -2, 0xFFFFFFFE, 0x1122334455667788, -5000000000),
    *(-9, 71, 30, 10),
)
"""The values that usdt_workload.c puts where each kind of argument is."""

pytestmark = pytest.mark.needs("bpf", "gcc")


class Workload:
    """A process that passes its probes on request."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self.path = path
        self._process = process
        self.pid = process.pid

    def go(self, times: int = 1) -> int:
        """Pass them; how many watch `guarded`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for _ in range(times):
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
            watching = int(self._process.stdout.readline())
        return watching


@pytest.fixture(scope="module", params=["-no-pie", "-pie"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload, where it was linked to be or anywhere."""
    path = tmp_path_factory.mktemp("usdt") / "workload"
    option = [request.param, "-fPIE"] if request.param == "-pie" else [request.param, "-fno-pie"]
    source = DATA / "usdt_workload.c"
    subprocess.run(["gcc", "-O1", *option, "-o", str(path), str(source)], check=True)
    return path


@contextmanager
def running(path: Path) -> Iterator[Workload]:
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Workload(path, process)
        process.kill()


@pytest.fixture
def workload(program: Path) -> Iterator[Workload]:
    with running(program) as found:
        yield found


@contextmanager
def loaded(*programs: str) -> Iterator[purebpf.Object]:
    spec = purebpf.read_object(DATA / "attach_usdt.bpf.o")
    with purebpf.load(spec.only(*programs)) as obj:
        yield obj


@pytest.fixture(params=["multi", "each"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to attach, on a kernel that has both."""
    if request.param == "each":
        monkeypatch.setattr(
            features, "have_uprobe_multi", lambda: features.Feature("it", False, "of the test")
        )
    elif not features.have_uprobe_multi():
        pytest.skip(str(features.have_uprobe_multi()))
    return request.param


def test_arguments_of_every_form(workload: Workload, way: str):
    with loaded("on_forms") as obj:
        with obj.programs["on_forms"].attach(
            f"{workload.path}:purebpf:forms", pid=workload.pid, cookie=0xC00C1E
        ):
            workload.go(PRIME)
        workload.go()
        seen = obj.globals["seen"]
        assert seen.forms == PRIME
        assert seen.values == FORMS
        assert (seen.count, seen.cookie) == (12, 0xC00C1E)


def test_every_place_counts_and_the_semaphore_tells(workload: Workload, way: str):
    with loaded("on_guarded") as obj:
        target = f"{workload.path}:purebpf:guarded"
        assert workload.go() == 0
        with obj.programs["on_guarded"].attach(target, pid=workload.pid):
            assert workload.go() > 0
        assert workload.go() == 0
        seen = obj.globals["seen"]
        assert (seen.guarded, seen.sum) == (3, 0 + 1 + 2)


def test_a_child_that_closes_it_leaves_every_place_and_the_semaphore(workload: Workload, way: str):
    with loaded("on_guarded") as obj:
        link = obj.programs["on_guarded"].attach(
            f"{workload.path}:purebpf:guarded", pid=workload.pid
        )
        in_child(link.close)
        in_child(obj.close)
        assert workload.go() > 0
        link.close()
        assert workload.go() == 0
        seen = obj.globals["seen"]
        assert (seen.guarded, seen.sum) == (3, 0 + 1 + 2)


def test_a_probe_without_arguments(workload: Workload, way: str):
    with loaded("on_silent") as obj:
        target = f"{workload.path}:purebpf:silent"
        with obj.programs["on_silent"].attach(target, pid=workload.pid):
            workload.go(2)
        seen = obj.globals["seen"]
        assert (seen.silent, seen.count, seen.beyond) == (2, 0, -errno.ENOENT)


def test_only_the_process_that_was_asked_for(program: Path, way: str):
    with running(program) as watched, running(program) as other, loaded("on_silent") as obj:
        with obj.programs["on_silent"].attach(f"{program}:purebpf:silent", pid=watched.pid):
            other.go(3)
            watched.go(2)
        assert obj.globals["seen"].silent == 2


@pytest.mark.needs("function_cookies")
def test_without_a_pid_a_probe_counts_in_every_process(program: Path, way: str):
    with loaded("on_silent") as obj:
        with obj.programs["on_silent"].attach(f"{program}:purebpf:silent"):
            for _ in range(2):
                with running(program) as each:
                    each.go(3)
        assert obj.globals["seen"].silent == 6


def test_two_links_have_descriptions_of_their_own(workload: Workload, way: str):
    with loaded("on_guarded", "on_forms") as obj:
        guarded, forms = (f"{workload.path}:purebpf:{name}" for name in ("guarded", "forms"))
        with (
            obj.programs["on_guarded"].attach(guarded, pid=workload.pid, cookie=1),
            obj.programs["on_forms"].attach(forms, pid=workload.pid, cookie=2),
        ):
            workload.go()
        seen = obj.globals["seen"]
        assert (seen.guarded, seen.sum, seen.cookie) == (3, 3, 1)
        assert seen.values == FORMS


def test_numbers_of_descriptions_are_used_again(workload: Workload, way: str):
    spec = purebpf.read_object(DATA / "attach_usdt.bpf.o").only("on_guarded")
    with purebpf.load(spec.resize(__bpf_usdt_specs=2)) as obj:
        program, target = obj.programs["on_guarded"], f"{workload.path}:purebpf:guarded"
        for _ in range(3):
            with program.attach(target, pid=workload.pid):
                workload.go()
                with pytest.raises(purebpf.NotSupportedError, match="__bpf_usdt_specs holds 2"):
                    program.attach(target, pid=workload.pid)
        assert obj.globals["seen"].guarded == 9


@pytest.mark.needs("function_cookies", "vmlinux_btf")
def test_without_cookies_places_are_found_by_address(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
):
    no = features.Feature("it", supported=False, reason="of the test")
    monkeypatch.setattr(features, "have_uprobe_multi", lambda: no)
    monkeypatch.setattr(features, "have_attach_cookie", lambda: no)
    monkeypatch.setitem(kconfig._VIRTUAL, "LINUX_HAS_BPF_COOKIE", lambda: 0)
    with loaded("on_guarded") as obj:
        places = obj.maps["__bpf_usdt_ip_to_spec_id"]
        target = f"{workload.path}:purebpf:guarded"
        with obj.programs["on_guarded"].attach(target, pid=workload.pid):
            assert len(places) == 3
            workload.go()
        assert len(places) == 0
        assert obj.globals["seen"].guarded == 3


@pytest.mark.needs("function_cookies")
def test_elements_of_arrays(workload: Workload, way: str):
    with purebpf.load(DATA / "attach_usdt_indexed.bpf.o") as obj:
        with obj.programs["on_indexed"].attach(
            f"{workload.path}:purebpf:indexed", pid=workload.pid
        ):
            workload.go()
        assert obj.globals["values"] == (50, 70, 50 << 8)


def test_what_cannot_be_attached_says_why(workload: Workload):
    with loaded("on_silent") as obj:
        attach = obj.programs["on_silent"].attach
        path = workload.path
        with pytest.raises(TypeError, match="target required"):
            attach()
        with pytest.raises(ValueError, match="is not a USDT probe"):
            attach("libc.so.6:setjmp")
        with pytest.raises(
            purebpf.AttachError, match=r"not have this probe; it has purebpf:forms, pur"
        ):
            attach(f"{path}:purebpf:nothing")
        with pytest.raises(purebpf.AttachError, match="not have this probe; it has none"):
            attach("/bin/true:purebpf:nothing")
        with pytest.raises(
            purebpf.NotSupportedError, match=r"reads argument 1: .* elements of arrays: use libbpf"
        ):
            attach(f"{path}:purebpf:indexed")
        for cookie in (-1, 1 << 64):
            with pytest.raises(ValueError, match=f"a cookie must .*, not {cookie}"):
                attach(f"{path}:purebpf:silent", cookie=cookie)
        with pytest.raises(purebpf.AttachError, match="no process has PID 2147483"):
            attach(f"{path}:purebpf:silent", pid=2147483000)


def test_an_argument_that_no_program_reads_may_have_any_form(workload: Workload, way: str):
    with loaded("on_guarded", "on_forms") as obj:
        target = f"{workload.path}:purebpf:vector"
        guarded, forms = obj.programs["on_guarded"], obj.programs["on_forms"]
        assert guarded.usdt_arguments == {0}
        with guarded.attach(target, pid=workload.pid):
            workload.go(PRIME)
        assert obj.globals["seen"].sum == 5 * PRIME
        with pytest.raises(purebpf.NotSupportedError, match=r"argument 2 '8@%xmm0': unknown reg"):
            forms.attach(target)


def test_variables_of_the_program_are_read(workload: Workload, way: str):
    with loaded("on_forms") as obj:
        target = f"{workload.path}:purebpf:symbolic"
        with obj.programs["on_forms"].attach(target, pid=workload.pid):
            workload.go()
        seen = obj.globals["seen"]
        assert (seen.count, seen.values[:3]) == (3, (10 | 20 << 32, 30, 40))


def test_a_link_can_be_pinned(workload: Workload, bpffs: Path):
    if not features.have_uprobe_multi():
        pytest.skip(str(features.have_uprobe_multi()))
    with loaded("on_silent") as obj:
        with obj.programs["on_silent"].attach(f"{workload.path}:purebpf:silent") as link:
            link.pin(bpffs / "link")
        workload.go(2)
        link.detach()
        assert obj.globals["seen"].silent == 2


def test_the_section_may_say_which_probe(program: Path, tmp_path: Path):
    data = (DATA / "attach_usdt.bpf.o").read_bytes()
    spec = purebpf.read_object(data).only("on_forms")
    changed = spec.programs["on_forms"]._replace(attach_target=f"{program}:purebpf:silent")
    with purebpf.load(spec._replace(programs={"on_forms": changed})) as obj:
        obj.attach() if features.have_attach_cookie() else pytest.skip("no attach cookies")
        with running(program) as workload:
            workload.go(2)
        assert obj.globals["seen"].forms == 2


_REMOVED = """
#define NOTE(name) __asm__ volatile("990: nop\\n" \\
    ".pushsection .note.stapsdt, \\"?\\", \\"note\\"\\n.balign 4\\n" \\
    ".4byte 992f - 991f, 994f - 993f, 3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n" \\
    "993: .8byte 990b, 0, 0\\n.asciz \\"shop\\"\\n.asciz \\"" name "\\"\\n.asciz \\"\\"\\n" \\
    "994: .balign 4\\n.popsection\\n")
__attribute__((noinline)) void unused(void) { NOTE("closed"); NOTE("sold"); }
int main(void) { NOTE("sold"); return 0; }
"""


@pytest.mark.needs("clang", "lld")
@pytest.mark.parametrize("option", ["-no-pie", "-pie"])
def test_probes_of_removed_functions_do_not_matter(option: str, tmp_path: Path, way: str):
    """lld drops the function and keeps its note; `sold` has a place that is left."""
    path = tmp_path / "shop"
    flags = ["-O1", "-ffunction-sections", "-Wl,--gc-sections", "-fuse-ld=/usr/bin/ld.lld-19"]
    flags += [option, "-fPIE" if option == "-pie" else "-fno-pie", "-xc", "-", "-o", str(path)]
    subprocess.run(["clang-19", *flags], input=_REMOVED, text=True, check=True)
    with loaded("on_silent") as obj:
        attach = obj.programs["on_silent"].attach
        with attach(f"{path}:shop:sold"):
            for _ in range(PRIME):
                subprocess.run([path], check=True)
        assert obj.globals["seen"].silent == PRIME
        with pytest.raises(purebpf.AttachError, match=r"has no code for this probe.*gc-sections"):
            attach(f"{path}:shop:closed")
