"""What is imported before a command answers --help, and before it is attached.

An import is the price of a start: this is what keeps it low, without a clock. See
docs/design/0002-start.md.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HELP = {
    "purebpf",
    "purebpf._version",
    "purebpf.cli",
    "purebpf.cli.arguments",
    "purebpf.cli.command",
    "purebpf.cli.destination",
    "purebpf.cli.output",
    "purebpf.cli.parser",
    "purebpf.cli.spelling",
    "purebpf.errors",
    "purebpf.lazy",
}
"""Of any command, beside its own package and its options."""

SPAN_COMMANDS = ("runqlat", "cpudist")
TIME_COMMANDS = ("offcpu", "wall")
COMMANDS = ("profile", "offcpu", "wall", "summary", "sampleip", "record", *SPAN_COMMANDS)

SLOW = {
    *("asyncio", "dataclasses", "inspect", "ipaddress", "json", "logging", "pathlib", "shutil"),
    *("shlex", "subprocess", "tempfile", "textwrap", "traceback", "urllib", "importlib.resources"),
    *("construct", "demangle", "elftools", "pyroute2"),
}

NOT_BEFORE_ATTACH = {
    *("purebpf.abi.helpers", "purebpf.btf.core.matching", "purebpf.elf"),
    *(
        "purebpf.measure.child",
        "purebpf.cli.live",
        "purebpf.cli.loss",
        "purebpf.measure.provenance",
        "purebpf.profile.loss",
    ),
    *("purebpf.profile.stacks", "purebpf.results", "purebpf.symbols"),
    *(
        "purebpf.kernel.features.features",
        "purebpf.kernel.features.probes",
        "purebpf.kernel.symbolize.symbolizer",
    ),
    "purebpf.kernel.programs.link_info",
    *(
        "purebpf.kernel.load.load_refusal",
        "purebpf.kernel.maps.map_errors",
        "purebpf.kernel.host.privilege",
    ),
    *("purebpf.kernel.load.verifier", "purebpf.wire.perf_format", "purebpf.wire.perf_records"),
}

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
from purebpf.kernel.processes import process_tracker
def snapshot(*_):
    raise SystemExit
process_tracker.Followed.snapshot = snapshot
"""


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


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_the_options_and_nothing_else_of_ours(command):
    modules = imported(RUN, f"purebpf.{command}", "--help")
    own = {f"purebpf.{command}", f"purebpf.{command}.options", f"purebpf.{command}.request"}
    if command in SPAN_COMMANDS:
        own = {f"purebpf.{command}", "purebpf.cli.latency_command"}
    elif command in TIME_COMMANDS:
        own |= {"purebpf.cli.time_options"}
    assert own <= modules
    assert {module for module in modules if module.startswith("purebpf")} - own <= HELP
    assert not among(modules, {*SLOW, "ctypes"} - {"textwrap"})  # argparse wraps with it


@pytest.mark.needs("bpf", "perf_event")
def test_what_is_not_needed_to_attach_is_not_imported_before():
    modules = imported(STOP_WHEN_ATTACHED + RUN, "purebpf.profile", "-F", "99", "1")
    assert "purebpf.kernel.attach.perf_event" in modules
    assert not among(modules, SLOW | NOT_BEFORE_ATTACH)


@pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")
@pytest.mark.parametrize("command", ["offcpu", "wall"])
def test_nothing_slow_is_imported_before_time_is_measured(command):
    modules = imported(STOP_WHEN_ATTACHED + RUN, f"purebpf.{command}", "1")
    assert "purebpf.kernel.instruments.offcpu_tracer" in modules
    assert not among(modules, SLOW)


LIBRARIES = ("profile.Profiler", "offcpu.OffCpu", "wall.Wall", "summary.Summary", "record.Recorder")


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_program_imports_of_a_command_knows_no_terminal(library):
    package, _, name = library.partition(".")
    modules = imported(
        f"""
import sys
from purebpf.{package} import Options, {name}
print(*sys.modules, file=sys.stderr)
"""
    )
    assert f"purebpf.{package}.session" in modules
    assert not among(modules, {"purebpf.cli"})
