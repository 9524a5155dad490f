"""What only the kernel can show: its own programs, its records, what it hides."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import purebpf
from purebpf.observe.processes.sideband import SideBand
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Reason
from purebpf.syscall import proc
from tests.kernel.symbol_programs import compile_program, running
from tests.support.environment import mounted

_DATA = Path(__file__).parents[3] / "data"
_ROOT = Path(__file__).parents[4]


@pytest.mark.needs("bpf")
def test_a_bpf_program_is_named_even_when_it_was_loaded_after_the_first_question():
    symbolizer = Symbolizer()
    assert symbolizer.kernel([0x10])[0].reason is Reason.NO_KERNEL_FUNCTION
    with purebpf.load(purebpf.read_object(_DATA / "load_run.bpf.o").only("flip")):
        rows = re.findall(
            r"^(\w+) t (bpf_prog_\w+_flip)\t\[bpf\]$",
            Path("/proc/kallsyms").read_text(),
            re.MULTILINE,
        )
        address, name = rows[-1]
        (found,) = symbolizer.kernel([int(address, 16) + 4])
    assert (found.name, found.offset, found.module) == (name, 4, "[bpf]")


@pytest.mark.needs("bpf")
def test_programs_that_are_loaded_later_do_not_get_the_names_of_others():
    """A symbol ends at the next one: what is loaded behind a program was a part of it."""
    spec = purebpf.read_object(_DATA / "load_run.bpf.o").only("flip")
    symbolizer = Symbolizer()
    with ExitStack() as loaded:
        for turn in range(24):
            loaded.enter_context(purebpf.load(spec))
            if turn == 12:
                first = [address for address, _ in _flips()]
                symbolizer.kernel(first)  # reads the table, and remembers the answers
        addresses = [address for address, _ in _flips()]
        assert set(addresses) > set(first)
        time.sleep(1.1)  # it looks once a second
        offsets = [frame.offset for frame in symbolizer.kernel(a + 4 for a in addresses)]
    assert offsets == [4] * len(addresses)


def _flips() -> list[tuple[int, str]]:
    """The programs of this name in memory."""
    rows = re.findall(
        r"^(\w+) t (bpf_prog_\w+_flip)\t\[bpf\]$",
        Path("/proc/kallsyms").read_text(),
        re.MULTILINE,
    )
    return [(int(address, 16), name) for address, name in rows]


@pytest.mark.needs("perf_event", "gcc")
def test_a_process_that_ended_before_it_was_read_is_named_from_the_side_band(tmp_path):
    program = compile_program(tmp_path / "short-lived")
    symbolizer = Symbolizer()
    with SideBand() as band:
        with running(program) as child:
            pass
        for change in band.drain():
            symbolizer.spaces.feed(change)
    assert symbolizer.spaces.has_exited(child.pid)
    found = symbolizer.user(child.pid, child.functions.values(), "short-lived")
    assert [frame.name for frame in found] == ["local_function", "global_function", "main"]


@pytest.mark.needs("perf_event", "gcc")
def test_both_programs_of_a_process_that_executed_another_one(tmp_path):
    program = compile_program(tmp_path / "program", "-no-pie")
    second = compile_program(tmp_path / "second", "-no-pie", "-DSECOND", source=_SECOND)
    symbolizer = Symbolizer()
    with SideBand() as band:
        with running("sh", "-c", f"exec {program}") as child:
            pass
        with running(second, program, functions=4) as both:
            pass
        for change in band.drain():
            symbolizer.spaces.feed(change)
    assert symbolizer.user(child.pid, [child.functions["main"]])[0].name == "main"
    (first,) = symbolizer.user(both.pid, [both.functions["only_second"]], "second")
    (then,) = symbolizer.user(both.pid, [both.functions["main"]], "program")
    assert (first.name, first.module) == ("only_second", str(second))
    assert (then.name, then.module) == ("main", str(program))


_SECOND = r"""
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline, used)) void only_second(void) { __asm__(""); }
int main(int count, char **arguments) {
  printf("only_second %p\n", (void *)only_second);
  fflush(stdout);
  execl(arguments[1], "program", (char *)0);
  return 1;
}
"""


@pytest.mark.needs("gcc")
def test_a_process_that_is_remembered_is_named_after_its_exit(tmp_path):
    program = compile_program(tmp_path / "program")
    symbolizer = Symbolizer()
    with running(program) as child:
        assert symbolizer.remember(child.pid)
    assert not symbolizer.remember(child.pid)
    (found,) = symbolizer.user(child.pid, [child.functions["main"]])
    assert found.name == "main"


def test_hidden_kernel_addresses_have_a_reason(tmp_path, monkeypatch):
    shown = Path("/proc/kallsyms").read_text()[:10_000]
    (tmp_path / "kallsyms").write_text(re.sub(r"^\w+", "0" * 16, shown, flags=re.MULTILINE))
    monkeypatch.setattr(proc, "KALLSYMS", str(tmp_path / "kallsyms"))
    (found,) = Symbolizer().kernel([0xFFFFFFFF81000000])
    assert (found.reason, found.kind) == (Reason.KERNEL_HIDDEN, "kernel")


def test_a_kernel_without_kallsyms_has_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(proc, "KALLSYMS", str(tmp_path / "missing"))
    (found,) = Symbolizer().kernel([0xFFFFFFFF81000000])
    assert (found.reason, found.detail) == (Reason.KERNEL_UNREADABLE, "ENOENT")


_ASK = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from purebpf.observe.symbols.symbolizer import Symbolizer
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
symbolizer = Symbolizer()
found = symbolizer.user(1, [0x1000]) + symbolizer.kernel([int(sys.argv[2])])
print(json.dumps([getattr(each, "reason", "named") for each in found]))
"""


def test_an_ordinary_user_gets_reasons_for_another_user_s_process_and_the_kernel():
    shown = Path("/proc/kallsyms").read_text().split(maxsplit=1)[0]
    command = [sys.executable, "-c", _ASK, _ROOT, str(int(shown, 16))]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    user, kernel = json.loads(out)
    assert user == Reason.FORBIDDEN
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    restrict = int(Path("/proc/sys/kernel/kptr_restrict").read_text())
    assert kernel == (Reason.KERNEL_HIDDEN if restrict or paranoid > 1 else "named")


@pytest.mark.needs("mount_namespace")
def test_a_process_that_proc_hides_has_not_exited():
    hidden = mounted("mount -t proc -o hidepid=2 proc /proc")
    command = [*hidden, sys.executable, "-c", _ASK, _ROOT, "0"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(out)[0] == Reason.HIDDEN
    with subprocess.Popen(["true"]) as gone:
        pass
    assert not proc.hides(gone.pid)
    assert not any(map(proc.hides, (os.getpid(), 0, -1, 0xFFFFFFFF)))
