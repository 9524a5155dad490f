"""Run the live tests on the kernels of the matrix and print one table.

    python -m tests.vm.matrix host 6.1 6.12 [--reruns 1] [--tests tests/kernel tests/commands]

`host` is the kernel that runs this; it comes first and alone. With --lanes 2, two processes share
its tests (tests/support/lanes.py). The others are guests, two side by
side, one core each: of a series, or with a kernel of your own (docs/testing.md). A guest that does
not boot is tried once more; a second failure ends the run with its console. Exit status 1 when a
test failed anywhere; with --reruns, when it failed every time, and those that were tried again are
listed; 2 when a kernel did not come to the end of its tests, or what failed was no test.

What came of a kernel is left in --out/NAME: report.xml (JUnit), features.json (what was probed and
what the tests used), output, failed (the names of tests), and of a guest its console.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.support import traces
from tests.support.lanes import beside
from tests.vm import guest, results
from tests.vm.kernels import SERIES, Kernel, fetch, is_own
from tests.vm.results import Result

HOST = "host"
SIDE_BY_SIDE = 2
HOST_TIMEOUT_S = 14400 if os.environ.get("PUREBPF_NIGHTLY") else 4000
TIMEOUT_S = 14400 if os.environ.get("PUREBPF_NIGHTLY") else 3000
"""For all tests of one guest; on an idle host they take less than half of it."""

_SHOWN = 5
"""Tests that ran beside another one, in what is printed of it."""

DEFAULT_TESTS = ("tests/kernel", "tests/commands")

SMOKE_TESTS = {
    "arm64": (
        "tests/kernel/loader/load/test_load_object.py",
        "tests/kernel/loader/load/test_relocation_oracle.py",
        "tests/kernel/loader/load/test_globals_live.py",
        "tests/kernel/loader/attach/test_attach_live.py",
        "tests/kernel/loader/maps/test_map_handle.py",
        "tests/kernel/loader/rings/test_ring_buffer.py",
    ),
}
"""What a guest of another architecture runs: load, relocate, attach, read maps and ring buffers."""


class Run(NamedTuple):
    """What to run: test files or folders, none for all; how often more where one fails; on which
    CPU, as QEMU names it; in how many processes on the host.
    """

    tests: list[str]
    reruns: int = 0
    cpu: str = ""
    lanes: int = 1

    def pytest(self, out: Path, *, shows_stacks_after_s: int, lane: int = 0) -> list[str]:
        """The interpreter's arguments. Each lane begins with another of the folders."""
        options = ["-q", "-p", "no:cacheprovider", "--durations=50"]
        options += ["-o", f"faulthandler_timeout={shows_stacks_after_s}"]
        if self.reruns:
            options += ["--reruns", str(self.reruns), "-rfER"]
        tests = self.tests or list(DEFAULT_TESTS)
        tests = tests[lane % len(tests) :] + tests[: lane % len(tests)]
        return ["-m", "pytest", *options, f"--junitxml={out}/report.xml", *tests]


def run_host(run: Run, out: Path) -> Result:
    """Run the tests on this kernel, and show what they print.

    Raises:
        RuntimeError: they did not live to their end.
    """
    start = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.xml").unlink(missing_ok=True)
    for place in traces.unmount_left():
        print(f"{place} was still mounted by tests that were killed: unmounted", file=sys.stderr)
    shutil.rmtree(out / "lanes", ignore_errors=True)
    lanes = [_Lane(run, out, number) for number in range(1, run.lanes + 1)]
    running = lanes
    while running := [lane for lane in running if lane.runs()]:
        time.sleep(1)
        if time.monotonic() - start > HOST_TIMEOUT_S:
            for lane in running:
                lane.tests.send_signal(signal.SIGABRT)  # faulthandler shows where they are
                lane.tests.wait()
    seconds = time.monotonic() - start
    for lane in lanes:
        if not (lane.folder / "report.xml").exists():
            raise RuntimeError(
                f"{HOST}: the tests ended without a report, after {seconds:.0f} s "
                f"(they may take {HOST_TIMEOUT_S}), with status {lane.tests.returncode}"
            )
    if run.lanes > 1:
        results.join([lane.folder for lane in lanes], out)
    output = (out / "output").read_text(errors="replace")
    _write_failed(out, output)
    failed = any(lane.tests.returncode for lane in lanes)
    result = results.read(out, seconds, failed=failed, output=output)
    for test, others in beside(out / "lanes", {*result.again, *results.failing(output)}).items():
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        print(f"{test} ran beside {', '.join(others[:_SHOWN]) or 'no other'}{more}")
    return result


class _Lane:
    """One of the processes that run the tests of this kernel.

    Attributes:
        folder: where it leaves its results.
        tests: the process.
    """

    def __init__(self, run: Run, out: Path, number: int) -> None:
        shared = out / "lanes"
        self.folder = shared / str(number) if run.lanes > 1 else out
        self.folder.mkdir(exist_ok=True, parents=True)
        (self.folder / "report.xml").unlink(missing_ok=True)
        settings = {
            "PUREBPF_EXCLUSIVE_HOST": "1",
            "PUREBPF_FEATURES": str(self.folder / "features.json"),
            "PUREBPF_TEST_LIMIT_S": "400",
            "PUREBPF_LANE": str(number),
        }
        if run.lanes > 1:
            settings |= {"PUREBPF_LANES": str(shared.resolve())}
        # to a file: a pipe would not end before the last process that a test left behind
        with (self.folder / "output").open("w") as written:
            self.tests = subprocess.Popen(
                [
                    sys.executable,
                    *run.pytest(self.folder, shows_stacks_after_s=300, lane=number - 1),
                ],
                env=os.environ | settings,
                stdout=written,
                stderr=subprocess.STDOUT,
            )
        self._prefix = f"{number}: " if run.lanes > 1 else ""
        self._output = (self.folder / "output").open(errors="replace")
        self._line = ""

    def runs(self) -> bool:
        """Whether it still runs. Shows the lines that it has printed, as they come: a run that is
        cut off tells how far it came.
        """
        runs = self.tests.poll() is None
        *lines, self._line = (self._line + self._output.read()).split("\n")
        if not runs:
            lines.append(self._line)
            self._output.close()
        for line in lines:
            print(f"{self._prefix}{line}", flush=True)
        return runs


def run_guest(kernel: Kernel, series: str, run: Run, out: Path) -> Result:
    """Boot a kernel and run the tests in it.

    Raises:
        RuntimeError: the guest did not boot, twice, or did not live to the end of the tests;
            carries the end of its output and of its console.
    """
    start = time.monotonic()
    for name in ("report.xml", "features.json", "failed"):
        (out / name).unlink(missing_ok=True)
    if kernel.root is None and not any("::" in test for test in run.tests):
        tests = run.tests or list(DEFAULT_TESTS)
        run = run._replace(tests=files_for(tests, series) or tests)
    command = _command(kernel, series, run)
    outcome = guest.run(kernel, command, out, timeout_s=TIMEOUT_S, cpu=run.cpu)
    if not outcome.began:
        print(f"{series}: the guest did not boot and is tried once more", file=sys.stderr)
        outcome = guest.run(kernel, command, out, timeout_s=TIMEOUT_S, cpu=run.cpu)
    left = (out / "report.xml").exists() and (out / "features.json").exists()
    if outcome.status is None or not left:
        how = "died, or left no report" if outcome.began else "did not boot, twice"
        raise RuntimeError(
            f"{series}: the guest {how}. The end of its output:\n{outcome.output[-4000:]}\n"
            f"The end of its console:\n{outcome.console[-6000:]}"
        )
    seconds = time.monotonic() - start
    _write_failed(out, outcome.output)
    return results.read(out, seconds, failed=outcome.status != 0, output=outcome.output)


def _write_failed(out: Path, output: str) -> None:
    """Leave the names of the tests that failed for whoever runs them again."""
    (out / "failed").write_text("".join(f"{test}\n" for test in results.failing(output)))


def _command(kernel: Kernel, series: str, run: Run) -> str:
    settings = {
        "PUREBPF_GUEST": "1",
        "PUREBPF_EXCLUSIVE_HOST": "1",
        "PUREBPF_SLOW_HOST": "1",
        "PUREBPF_TEST_LIMIT_S": "1000",
        "PUREBPF_CONSTANTS": os.environ.get("PUREBPF_CONSTANTS", ""),
        "PUREBPF_NIGHTLY": os.environ.get("PUREBPF_NIGHTLY", ""),
        "PUREBPF_BY_DAY": os.environ.get("PUREBPF_BY_DAY", ""),
        "PUREBPF_KERNEL": "" if is_own(series) else series,
        "PUREBPF_FEATURES": "/run/out/features.json",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    python = sys.executable
    if kernel.root is not None:
        # Python is not the host's; its packages are, but for those with machine code in them
        python = "python3.11"
        settings["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # hypothesis, and what reruns
        settings["PYTHONPATH"] = os.pathsep.join((str(Path.cwd()), *_packages()))
        run = Run(run.tests or list(SMOKE_TESTS[kernel.architecture]))
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    # an emulated verifier takes minutes beside other work, and showing stacks has ended a guest
    arguments = run.pytest(Path("/run/out"), shows_stacks_after_s=1200)
    return f"export {exports}\nexec {shlex.join([python, *arguments])}"


def _packages() -> list[str]:
    return [path for path in sys.path if path.endswith("site-packages")]


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="*", default=["6.1", "6.12"])
    parser.add_argument("--tests", nargs="+", default=[])
    parser.add_argument("--reruns", type=int, default=0, metavar="N")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help="processes of the host")
    parser.add_argument("--cpu", default="", help="of guests, as QEMU names it")
    parser.add_argument("--out", type=Path, default=Path("build/vm"))
    options = parser.parse_args()
    names = [HOST, *SERIES] if options.kernels == ["all"] else options.kernels
    known = (HOST, *SERIES)
    if unknown := [name for name in names if name not in known and not is_own(name)]:
        parser.error(f"no such kernel: {', '.join(unknown)}; there are {', '.join(known)}")
    run = Run(options.tests, options.reruns, options.cpu, options.lanes)
    try:
        found, died = _run(names, run, options.out)
    except RuntimeError as error:  # no kernel to boot
        print(error, file=sys.stderr)
        return 2
    for name, result in found.items():
        if result.failed and name != HOST:  # the host's was shown as it came
            print(f"== {name}\n{result.output}")
            print(_end_of_console(options.out / name))
    if found:
        print(results.table(found))
    for error in died:
        print(error, file=sys.stderr)
    failed = [result for result in found.values() if result.failed]
    if died or not all(results.failing(result.output) for result in failed):
        return 2
    return 1 if failed else 0


def _end_of_console(folder: Path) -> str:
    """What a guest's kernel said last: a warning there may be why a test failed."""
    console = folder / "console"
    return console.read_text(errors="replace")[-6000:] if console.exists() else ""


def compile_all() -> None:
    """Leave bytecode beside every module: a guest cannot, and would compile at each start."""
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "purebpf", "tests"],
        env=_own_environment(),
        stdout=subprocess.DEVNULL,
        check=False,
    )


def files_for(tests: list[str], series: str) -> list[str]:
    """The files with tests for guests of `series`: emulation takes minutes to read all of them.

    pytest rewrites the files that it reads and caches that, so a guest finds them rewritten.
    """
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", *tests],
        env=_own_environment() | {"PUREBPF_KERNEL": "" if is_own(series) else series},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return re.findall(r"^(tests/\S+\.py): \d+$", collected.stdout, re.MULTILINE)


def _own_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _run(names: list[str], run: Run, out: Path) -> tuple[dict[str, Result], list[RuntimeError]]:
    """What came of each kernel, and of those that nothing came of, why."""
    kernels = {name: fetch(name) for name in names if name != HOST}
    if kernels:
        compile_all()
    found: dict[str, Result] = {}
    died: list[RuntimeError] = []
    if HOST in names:
        try:
            found[HOST] = run_host(run, out / HOST)
        except RuntimeError as error:
            died.append(error)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        runs = {
            name: pool.submit(run_guest, kernel, name, run, out / name)
            for name, kernel in kernels.items()
        }
        for name, running in runs.items():
            try:
                found[name] = running.result()
            except RuntimeError as error:
                died.append(error)
    return found, died


if __name__ == "__main__":
    sys.exit(main())
