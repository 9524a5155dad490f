"""What is imported before the profiler answers --help, and before it is attached.

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
    "purebpf.cli.parser",
    "purebpf.cli.title",
    "purebpf.errors",
    "purebpf.lazy",
    "purebpf.profile",
    "purebpf.profile.options",
}

SLOW = {
    *("asyncio", "dataclasses", "inspect", "ipaddress", "json", "logging", "pathlib", "shutil"),
    *("shlex", "subprocess", "tempfile", "textwrap", "traceback", "urllib", "importlib.resources"),
    *("construct", "demangle", "elftools", "pyroute2"),
}

NOT_BEFORE_ATTACH = {
    *("purebpf.abi.helpers", "purebpf.btf.core", "purebpf.elf"),
    *(
        "purebpf.cli.child",
        "purebpf.cli.live",
        "purebpf.cli.loss",
        "purebpf.cli.header",
        "purebpf.profile.loss",
        "purebpf.profile.render",
    ),
    *("purebpf.profile.stacks", "purebpf.report", "purebpf.symbols"),
    *("purebpf.kernel.features", "purebpf.kernel.probes", "purebpf.kernel.symbolizer"),
    "purebpf.kernel.link_info",
    *("purebpf.kernel.load_refusal", "purebpf.kernel.map_errors", "purebpf.kernel.privilege"),
    *("purebpf.kernel.verifier", "purebpf.wire.perf_format", "purebpf.wire.perf_records"),
}

RUN = """
import sys
before = {*sys.modules}
import runpy
sys.argv = ["purebpf.profile", *sys.argv[1:]]
try:
    runpy.run_module("purebpf.profile", run_name="__main__")
finally:
    print(*({*sys.modules} - before), file=sys.stderr)
"""

STOP_WHEN_ATTACHED = """
from purebpf.kernel import followed
def snapshot(*_):
    raise SystemExit
followed.Followed.snapshot = snapshot
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


def test_help_imports_the_options_and_nothing_else_of_ours():
    modules = imported(RUN, "--help")
    assert {module for module in modules if module.startswith("purebpf")} == HELP
    assert not among(modules, {*SLOW, "ctypes"} - {"textwrap"})  # argparse wraps with it


@pytest.mark.needs("bpf", "perf_event")
def test_what_is_not_needed_to_attach_is_not_imported_before():
    modules = imported(STOP_WHEN_ATTACHED + RUN, "-F", "99", "1")
    assert "purebpf.kernel.attach.perf_event" in modules
    assert not among(modules, SLOW | NOT_BEFORE_ATTACH)
