"""What is imported before a command answers --help, and before it is attached.

An import is the price of a start: this is what keeps it low, without a clock. See
docs/design/0002-start.md.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.commands import package_of

ROOT = Path(__file__).resolve().parents[2]

HELP_PACKAGES = {
    "purebpf.cli",
    "purebpf.tools",
    "purebpf._version",
    "purebpf.closable",
    "purebpf.enums",
    "purebpf.errors",
    "purebpf.formats",
    "purebpf.lazy",
    "purebpf.measure",
    "purebpf.safe_path",
    "purebpf.tuples",
}
HELP_MODULES = 16
"""Of any command, beside its own package: from these packages, and no more than so many."""

SPAN_COMMANDS = ("runqlat", "cpudist")
TIME_COMMANDS = ("offcpu", "wall")
EVENT_COMMANDS = ("exec", "open")
COMMANDS = (
    *("profile", "offcpu", "wall", "summary", "sampleip", "record"),
    *(*SPAN_COMMANDS, *EVENT_COMMANDS),
)

SLOW = {
    *("asyncio", "dataclasses", "inspect", "ipaddress", "json", "logging", "pathlib", "shutil"),
    *("shlex", "subprocess", "tempfile", "textwrap", "traceback", "urllib", "importlib.resources"),
    *("construct", "demangle", "elftools", "pyroute2"),
}

NOT_BEFORE_ATTACH = {
    *("purebpf.btf.core", "purebpf.btf.dump", "purebpf.elf", "purebpf.filter", "purebpf.results"),
    *("purebpf.symbols", "purebpf.unwind", "purebpf.wire"),
    *("purebpf.loader.features", "purebpf.observe.filters", "purebpf.loader.rings"),
    "purebpf.observe.symbols",
}
"""Packages for what comes after a profiler is attached, or that it never needs."""

NOT_BEFORE_ATTACH_ANYWHERE = {
    *("child", "helpers", "link_info", "live", "load_refusal", "loss", "map_errors"),
    *("privilege", "provenance", "render", "stacks", "verifier"),
}
"""Modules of other packages that explain a failure or show a result, by their last name."""

RUN = """
import sys
before = {*sys.modules}
import runpy
name, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = name
try:
    runpy.run_module(name, run_name="__main__")
finally:
    print(*({*sys.modules} - before), file=sys.stderr)
"""

STOP_WHEN_ATTACHED = """
from purebpf.observe.processes import process_tracker
def snapshot(*_):
    raise SystemExit
process_tracker.Followed.snapshot = snapshot
"""
NO_PYTHON = """
from purebpf.measure import process_watch
process_watch.running = list
from purebpf.observe.runtimes.hotspot import java_processes
java_processes._runs_java = lambda _: False
"""
"""A machine without interpreters and JVMs, whose tables a start would wait for."""


def imported(code: str, *argv: str) -> set[str]:
    """The modules that `code` has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], check=True, capture_output=True, text=True
    )
    return set(done.stderr.split())


def among(modules: set[str], unwanted: set[str]) -> set[str]:
    """Those that are one of the unwanted, or inside of one."""
    return {
        module
        for module in modules
        if any(module == each or module.startswith(f"{each}.") for each in unwanted)
    }


def slow_tuples(modules: set[str]) -> set[str]:
    """The classes of `modules` that purebpf.tuples would make in half of the time."""
    return {
        f"{module}.{name}"
        for module in modules
        for name, value in vars(import_module(module)).items()
        if NamedTuple in getattr(value, "__orig_bases__", ()) and value.__module__ == module
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_the_options_and_nothing_else_of_ours(command):
    package = package_of(command)
    modules = imported(RUN, package, "--help")
    own = {package, f"{package}.options", f"{package}.request"}
    if command in SPAN_COMMANDS:
        own = {package, "purebpf.cli.latency_command"}
    elif command in TIME_COMMANDS:
        own |= {"purebpf.cli.time_options"}
    elif command in EVENT_COMMANDS:
        own |= {"purebpf.cli.event_command"}
    assert own <= modules
    others = {module for module in modules if module.startswith("purebpf.")} - own
    assert others == among(others, HELP_PACKAGES)
    assert len(others) <= HELP_MODULES
    assert not among(modules, {*SLOW, "ctypes"} - {"textwrap"})  # argparse wraps with it


@pytest.mark.needs("bpf", "perf_event")
def test_what_is_not_needed_to_attach_is_not_imported_before():
    modules = imported(
        STOP_WHEN_ATTACHED + NO_PYTHON + RUN, "purebpf.tools.profile", "-F", "99", "1"
    )
    assert "purebpf.loader.attach.perf_event" in modules
    assert not among(modules, SLOW | NOT_BEFORE_ATTACH)
    ours = {module for module in modules if module.startswith("purebpf.")}
    last_names = {module.rpartition(".")[2] for module in ours}
    assert not last_names & NOT_BEFORE_ATTACH_ANYWHERE
    assert not slow_tuples(ours)


def test_the_packages_exist() -> None:
    """A package that moved would never be imported, whatever a command does."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in ROOT.glob("purebpf/**/*.py")
    }
    names = {name.removesuffix(".__init__") for name in names}
    assert names >= HELP_PACKAGES | NOT_BEFORE_ATTACH
    assert {name.rpartition(".")[2] for name in names} >= NOT_BEFORE_ATTACH_ANYWHERE


@pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")
@pytest.mark.parametrize("command", ["offcpu", "wall"])
def test_nothing_slow_is_imported_before_time_is_measured(command):
    modules = imported(STOP_WHEN_ATTACHED + RUN, package_of(command), "1")
    assert "purebpf.observe.instruments.offcpu_tracer" in modules
    assert not among(modules, SLOW)


def test_declarations_are_imported_only_where_they_read():
    target = str(ROOT / "tests/data/core/core_loads.bpf.o")
    types = target.replace(".bpf.o", ".target.o")
    modules = imported(RUN, "purebpf.tools.inspect", target, "--btf", types)
    assert "purebpf.elf.reader" in modules
    assert not among(modules, {"construct", "elftools"})
    modules = imported(RUN, "purebpf.tools.inspect", "--sections", target)
    assert "elftools" in modules
    assert "construct" not in modules


LIBRARIES = (
    *("profile.Profiler", "offcpu.OffCpu", "wall.Wall", "summary.Summary", "record.Recorder"),
    *("tcp.Tcp", "io.Io"),
)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_program_imports_of_a_command_does_not_import_the_terminal(library):
    package, _, name = library.partition(".")
    kind = "OffCpuOptions" if package == "offcpu" else f"{package.capitalize()}Options"
    modules = imported(
        f"""
import sys
from purebpf.tools.{package} import {kind}, {name}
print(*sys.modules, file=sys.stderr)
"""
    )
    assert f"purebpf.tools.{package}.session" in modules
    assert not among(modules, {"purebpf.cli"})


def test_modules_of_php_and_ruby_are_imported_for_processes_that_run_them():
    modules = imported(
        """
import sys
import purebpf.observe.runtimes.cpython.python_tables
print(*sys.modules, file=sys.stderr)
"""
    )
    both = {"purebpf.observe.runtimes.php", "purebpf.observe.runtimes.ruby"}
    assert not among(modules, {*both, "purebpf.runtimes.php", "purebpf.runtimes.ruby"})


@pytest.mark.needs("bpf")
@pytest.mark.parametrize(
    "script",
    [
        "begin { exit() }",
        "tracepoint:syscalls:sys_enter_openat { @[comm, str(args.filename)] = count(); exit() }",
    ],
)
def test_a_script_imports_nothing_slow(script):
    modules = imported(RUN, "purebpf.tools.script", "-e", f"{script} interval:ms:1 {{ exit() }}")
    assert "purebpf.observe.script.session" in modules
    ours = {module for module in modules if module.startswith("purebpf.")}
    assert not among(modules, {*SLOW, "socket", "hashlib", "linecache", "threading"})
    assert not among(modules, {"purebpf.observe.unwind", "purebpf.loader.features"})
    assert not slow_tuples(ours)


@pytest.mark.needs("perf_event")
def test_counting_imports_nothing_of_stacks():
    modules = imported(RUN, "purebpf.tools.stat", "-e", "task-clock", "--", "true")
    assert "purebpf.tools.stat.session" in modules
    assert not among(modules, {"purebpf.results.model.profile", "purebpf.symbols", "textwrap"})
    assert not among(modules, {"purebpf.findings", "purebpf.observe.symbols", "purebpf.unwind"})


NOT_IN_A_DUMP = {
    *("purebpf.findings.words", "purebpf.observe.instruments.process_tree"),
    *("purebpf.observe.runtimes.cpython.task_table", "purebpf.observe.runtimes.golang"),
    *("purebpf.observe.symbols.jit_symbols", "purebpf.results.formats", "purebpf.syscall.folder"),
    *("purebpf.results.model.profile", "purebpf.runtimes.golang", "purebpf.runtimes.php"),
    *("textwrap", "threading"),
}
"""What a dump of a Python process needs for other processes or options alone."""


@pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")
def test_a_dump_of_python_imports_nothing_of_other_runtimes():
    sleeper = [sys.executable, "-c", "import time; print(flush=True); time.sleep(100)"]
    with subprocess.Popen(sleeper, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            modules = imported(RUN, "purebpf.tools.dump", str(child.pid))
        finally:
            child.kill()
    assert "purebpf.tools.dump.session" in modules
    assert not among(modules, NOT_IN_A_DUMP)
