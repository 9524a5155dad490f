"""Run the runtime tests in a copy of bpftrace's source, and compare with the lists of names here.

    python scripts/run_conformance.py COPY [--kernel 6.12] [--only REGEX] [--json RESULTS.json]

COPY has the source of bpftrace and, in tests/testprogs and tests/testlibs, its built programs.
Nothing of it is in this repository but names of tests: those that bpftrace 0.27.1 passes, and those
that purebpf fails, which scripts/check_conformance.py compares with the run. Without --kernel the
tests without kprobes and the like run on this machine; with it, those with them run in a guest.
Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path

import check_conformance
from conformance_cases import Case, is_as_expected, read_cases

ROOT = Path(__file__).parents[1]
_ATTACHED = "__BPFTRACE_NOTIFY_PROBES_ATTACHED"
_START_S, _GRACE_S, _BEFORE_S = 10.0, 2.0, 0.3
_FEATURES = {"dwarf": "libdw (DWARF support)", "libpath_resolv": "bcc library path resolution",
             "signal": "send_signal", "get_tai_ns": "get_ktime_ns", "loop": "Loop support",
             "dwunwind": "dwunwind (DWARF stack unwinding)",
             "blazesym": "blazesym (advanced symbolization)"}  # fmt: skip
"""Features whose names in tests differ from those of --info."""
_IN_GUEST = {"kprobe", "fentry", "iter"}
_GUEST_S = 7200.0


class Runner:
    """Runs tests with one command.

    Args:
        binary: the command; it is called bpftrace, since tests look at the name of its process.
        folder: of the tests.
        patience: a factor of all times.
        kinds: the probes of `KINDS` that this kernel has.
    """

    def __init__(self, binary: Path, folder: Path, patience: float, kinds: set[str]) -> None:
        self._binary, self._folder = str(binary), folder
        self._patience, self._kinds = patience, kinds
        done = subprocess.run([binary, "--info"], capture_output=True, text=True, check=True)
        self._info = done.stdout

    def run(self, case: Case) -> tuple[str, str]:
        """Run a test; return its verdict (pass, fail, timeout or skip), and the reason."""
        why = case.missing(self._kinds) or self._missing_feature(case)
        if why:
            return "skip", why
        if any(not self._succeeds(line) for line in [*case.all("REQUIRES"), *case.all("SETUP")]):
            return "skip", "REQUIRES or SETUP"
        try:
            return self._judge(case)
        finally:
            for line in case.all("CLEANUP"):
                self._succeeds(line)

    def _missing_feature(self, case: Case) -> str:
        for word in " ".join(case.all("REQUIRES_FEATURE")).split():
            name = word.removeprefix("!")
            has = f"{_FEATURES.get(name, name)}: yes" in self._info
            if has == word.startswith("!"):
                return f"feature {word}"
        return ""

    def _succeeds(self, line: str) -> bool:
        done = subprocess.run(line, shell=True, cwd=self._folder, capture_output=True, check=False)
        return done.returncode == 0

    def _judge(self, case: Case) -> tuple[str, str]:
        with ExitStack() as stack:
            output, status = self._output(case, stack)
        for word, text in case.expects:
            if not is_as_expected(case, word, text, output, self._folder):
                verdict = "timeout" if status is None else "fail"
                return verdict, f"{word} {text!r}; output: {output[-1000:]!r}"
        if status is None:
            return "pass", ""
        if case.has("WILL_FAIL"):
            return ("pass", "") if status else ("fail", "it ended well, and should not")
        wanted = int(case.first("RETURN_CODE", "0"))
        return ("pass", "") if status == wanted else ("fail", f"exit status {status}")

    def _output(self, case: Case, stack: ExitStack) -> tuple[str, int | None]:
        """Run the command of a test; return its output and its status, None if it went on."""
        before_pid = self._start_before(case, stack)
        if case.is_script:
            is_json = case.expects and case.expects[0][0] == "EXPECT_JSON"
            options = "-q -f json " if is_json else ""
            command = f"exec {self._binary} {options}-e {shlex.quote(case.source)}"
        else:
            command = case.source.replace("{{BPFTRACE}}", self._binary)
            command = command.replace("{{BEFORE_PID}}", str(before_pid))
        process = self._start(case, command, stack, subprocess.PIPE)
        assert process.stdout is not None
        data, attached_s, begun_s = b"", 0.0, time.monotonic()
        limit_s = float(case.first("TIMEOUT", "5"))
        while True:
            ready = select.select([process.stdout], [], [], 0.05)[0]
            chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            data += chunk
            if not attached_s and _ATTACHED.encode() in data:
                attached_s = time.monotonic()
                if any(word in ("EXPECT_FILE", "EXPECT_JSON") for word, _ in case.expects):
                    data = data.split(f"{_ATTACHED}\n".encode(), 1)[-1]
                for line in case.all("AFTER"):
                    self._start(case, line, stack, subprocess.DEVNULL)
            if process.poll() is not None and not chunk:
                return data.decode(errors="backslashreplace"), process.returncode
            since_s = time.monotonic() - (attached_s or begun_s)
            if since_s > self._patience * (limit_s if attached_s else _START_S):
                data += self._end(process)
                return data.decode(errors="backslashreplace"), None

    def _start_before(self, case: Case, stack: ExitStack) -> int:
        """Start the programs that run before; return the process of the first."""
        befores = [
            self._start(case, line, stack, subprocess.DEVNULL) for line in case.all("BEFORE")
        ]
        if not befores:
            return 0
        time.sleep(_BEFORE_S * self._patience)
        pid = befores[0].pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            pid = int(children[0]) if children else pid
        return pid

    def _start(
        self, case: Case, line: str, stack: ExitStack, output: int
    ) -> subprocess.Popen[bytes]:
        """Start a shell line in a session of its own, which ends with the test."""
        variables = {_ATTACHED: "1", "HOME": "/root", "BPFTRACE_VERIFY": "1"}
        for pair in " ".join(case.all("ENV")).split():
            name, _, value = pair.partition("=")
            variables[name] = value
        process = subprocess.Popen(
            line, shell=True, cwd=self._folder, env={**os.environ, **variables},
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, bufsize=0,
        )  # fmt: skip

        def leave() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

        stack.callback(leave)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> bytes:
        """End a command that went on, and return what it printed then."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_GRACE_S * self._patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stdout is not None
        data = b""
        while select.select([process.stdout], [], [], 0)[0]:
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            data += chunk
        return data


def _write_binary(folder: str) -> Path:
    """Write a program named bpftrace that runs this tree."""
    path = Path(folder, "bpftrace")
    text = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom purebpf.__main__ import start\n"
    path.write_text(f"#!{sys.executable} -P\n{text}sys.exit(start())\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _run_here(options: argparse.Namespace, kinds: set[str]) -> list[dict[str, str]]:
    """Run the tests on this kernel, print those that fail, and return all results."""
    tests = options.copy / "tests"
    cases = [case for case in read_cases(tests / "runtime") if re.search(options.only, case.name)]
    if kinds:
        cases = [case for case in cases if case.kinds() & kinds]
    beside = [case for case in cases if not case.is_alone]
    alone = [case for case in cases if case.is_alone]
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        runner = Runner(_write_binary(folder), tests, options.patience, kinds)
        verdicts = chain(pool.map(runner.run, beside), map(runner.run, alone))
        for case, (verdict, why) in zip([*beside, *alone], verdicts, strict=True):
            name = case.name.removeprefix(f"{case.suite}.")
            rows.append({"suite": case.suite, "name": name, "verdict": verdict, "why": why})
            if verdict not in ("pass", "skip"):
                print(f"{verdict} {case.name}: {why[:300]}", flush=True)
    return rows


def _run_in_guest(options: argparse.Namespace) -> list[dict[str, str]]:
    """Run the tests with probes that this kernel lacks in a guest; return their results."""
    sys.path.insert(0, str(ROOT))
    from tests.vm import guest, kernels

    command = [sys.executable, __file__, str(options.copy.resolve()), "--in-guest",
               "--only", options.only, "--jobs", str(options.jobs),
               "--patience", str(options.patience), "--json", "/run/out/results.json"]  # fmt: skip
    out = ROOT / "build" / "conformance" / options.kernel
    kernel = kernels.fetch(options.kernel)
    outcome = guest.run(kernel, f"ulimit -n 20000\n{shlex.join(command)}", out, timeout_s=_GUEST_S)
    print(outcome.output)
    rows: list[dict[str, str]] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return rows


def main(argv: Sequence[str]) -> int:
    """Run the tests, and return 1 if a verdict is not the one that the lists expect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("copy", type=Path)
    parser.add_argument("--kernel", metavar="SERIES", help="run those with kprobes in this guest")
    parser.add_argument("--only", default="", metavar="REGEX", help="tests with such a name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--patience", type=float, default=3.0, help="a factor of all times")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.in_guest:
        rows = _run_here(options, _IN_GUEST)
        options.json.write_text(json.dumps(rows), encoding="utf-8")
        return 0
    rows = _run_in_guest(options) if options.kernel else _run_here(options, set())
    if options.json is not None:
        options.json.write_text(json.dumps(rows), encoding="utf-8")
    lists = check_conformance.IN_GUESTS if options.kernel else check_conformance.HERE
    return check_conformance.report(rows, lists, is_whole=not options.only)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
