"""Type one-liners beside bpftrace, and write the comparison as docs/script-beside-bpftrace.md.

    python scripts/compare_with_bpftrace.py [--bpftrace COMMAND] [--write]

Both tools watch one run of bench/workloads/beside.c at the same time. --write also makes
docs/images/script.svg, a recording of what purebpf printed. Needs root, gcc and bpftrace.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from recording import Line, Scene, write_recording

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "script-beside-bpftrace.md"
RECORDING = ROOT / "docs" / "images" / "script.svg"
_DRAIN_S = 1.5
_MOST_LINES = 9
_MOST_ROWS = 16
_IS = '/comm == "beside"/'
LINES: dict[str, str] = {
    "hello": 'BEGIN { printf("hello world\\n"); exit(); }',
    "which files are opened?": f"tracepoint:syscalls:sys_enter_openat {_IS} "
    '{ printf("%s %s\\n", comm, str(args.filename)); }',
    "which process makes system calls?": f"tracepoint:raw_syscalls:sys_enter {_IS} "
    "{ @[comm] = count(); }",
    "which calls are they?": f"tracepoint:raw_syscalls:sys_enter {_IS} {{ @[args.id] = count(); }}",
    "how large are reads?": f"tracepoint:syscalls:sys_exit_read {_IS} "
    "{ @bytes = hist(args.ret); }",
    "the same in steps of 100": f"tracepoint:syscalls:sys_exit_read {_IS} "
    "{ @bytes = lhist(args.ret, 0, 1000, 100); }",
    "how many bytes are read?": f"tracepoint:syscalls:sys_exit_read {_IS} "
    "{ @[comm] = sum(args.ret); }",
    "which opens fail?": 'tracepoint:syscalls:sys_exit_openat /comm == "beside" && args.ret < 0/ '
    "{ @[comm, args.ret] = count(); }",
    "how large are writes?": f"tracepoint:syscalls:sys_enter_write {_IS} {{ @ = stats(args.count); "
    "@a = avg(args.count); @most = max(args.count); @least = min(args.count); }",
    "how often is each file opened?": f"tracepoint:syscalls:sys_enter_openat {_IS} "
    "{ @[str(args.filename)] = count(); }",
    "what does a function get?": "uprobe:FOLDER/beside:twice { @ = count(); "
    "@number = lhist(arg0, 0, 1100, 100); }",
    "what does a function return?": "uretprobe:FOLDER/beside:twice { @ = hist(retval); }",
    "which programs start?": 'tracepoint:sched:sched_process_exec /comm == "besides"/ '
    '{ printf("%s %s\\n", comm, str(args.filename)); }',
    "which processes end?": 'tracepoint:sched:sched_process_exit /comm == "besides"/ '
    "{ @[comm] = count(); }",
    "the three most frequent calls": f"tracepoint:raw_syscalls:sys_enter {_IS} "
    "{ @[args.id] = count(); } END { print(@, 3); clear(@); }",
    "writes by size": f"tracepoint:syscalls:sys_enter_write {_IS} {{ $n = args.count; "
    "if ($n > 4000) { @large++; } else if ($n > 1000) { @medium++; } else { @small++; } }",
    "tuples as keys": f"tracepoint:syscalls:sys_enter_read {_IS} "
    "{ @[(comm, args.fd)] = count(); }",
    "who connects where?": f"tracepoint:syscalls:sys_enter_connect {_IS} "
    "{ $a = (struct sockaddr_in *)args.uservaddr; "
    'printf("%s %d\\n", ntop($a->sin_addr.s_addr), bswap($a->sin_port)); }',
    "a call and its return": f"tracepoint:syscalls:sys_enter_getppid {_IS} {{ @s[tid] = 1; }} "
    "tracepoint:syscalls:sys_exit_getppid /@s[tid]/ { @n = count(); delete(@s, tid); }",
    "columns": 'tracepoint:syscalls:sys_enter_write /comm == "beside" && args.count % 1000 == 0/ '
    '{ printf("%-8s|%8d|%#x|%5s|\\n", comm, args.count, args.count, "ab"); }',
    "which of these events happen?": f"tracepoint:syscalls:sys_enter_getp* {_IS} "
    "{ @[probe] = count(); }",
    "which pages fault?": f"software:page-faults:1 {_IS} {{ @faults = count(); }}",
}
"""One-liners by question; FOLDER has the workload."""


class Watched:
    """A tool that runs, and the lines that it prints with their times.

    Args:
        command: the tool and its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._begun_s = time.monotonic()
        self.lines: list[Line] = []
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _now_s(self) -> float:
        return time.monotonic() - self._begun_s

    def _read(self) -> None:
        for line in self._process.stdout:
            self.lines.append(Line(self._now_s(), line.removesuffix("\n")))

    def wait_until_attached(self) -> None:
        """Read its messages until its probes are attached."""
        for line in self._process.stderr:
            if "ttached" in line:
                self.lines.append(Line(self._now_s(), line.rstrip()))
                return

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.lines.append(Line(self._now_s(), "^C"))
        self._process.send_signal(signal.SIGINT)

    def finish(self) -> float:
        """Wait for its end, and return how long it ran."""
        self._process.wait(timeout=60)
        self._reader.join()
        self._process.stdout.close()
        self._process.stderr.close()
        return self._now_s()

    @property
    def output(self) -> str:
        """What it has printed on standard output."""
        messages = ("Attached ", "^C")
        texts = [line.text for line in self.lines if not line.text.startswith(messages)]
        return "".join(f"{text}\n" for text in texts)


def run(tools: Sequence[Sequence[str]], text: str, workload: Sequence[str]) -> list[Watched]:
    """Run a script by each tool at the same time, beside one run of the workload."""
    watching = [Watched([*tool, "-e", text]) for tool in tools]
    for tool in watching:
        tool.wait_until_attached()
    if "tracepoint:" in text or "probe:" in text or "software:" in text:
        subprocess.run(workload, check=True)
        time.sleep(_DRAIN_S)
        for tool in watching:
            tool.interrupt()
    return watching


def _verdict(ours: str, theirs: str) -> str:
    if ours == theirs:
        return "byte for byte"
    rows = (sorted(text.split("\n")) for text in (ours, theirs))
    return "equal rows, ties in another order" if next(rows) == next(rows) else "**differs**"


def _shown(text: str) -> str:
    lines = text.strip("\n").split("\n")
    more = [f"({len(lines) - _MOST_LINES} more lines)"] if len(lines) > _MOST_LINES else []
    return "\n".join(lines[:_MOST_LINES] + more)


def compare(bpftrace: Sequence[str], folder: str) -> tuple[list[str], list[str], list[Scene]]:
    """Return the rows of a table, what was printed about each question, and scenes of it."""
    source = str(ROOT / "bench" / "workloads" / "beside.c")
    subprocess.run(["gcc", "-O1", "-o", f"{folder}/beside", source], check=True)
    shutil.copy("/bin/true", f"{folder}/besides")
    tools = [[sys.executable, "-m", "purebpf", "script"], bpftrace]
    rows, records, scenes = [], [], []
    for question, line in LINES.items():
        text = line.replace("FOLDER", folder)
        watching = run(tools, text, [f"{folder}/beside", f"{folder}/besides"])
        end_s = [tool.finish() for tool in watching]
        ours, theirs = (tool.output for tool in watching)
        verdict = _verdict(ours, theirs)
        print(f"{question} {verdict}", flush=True)
        cell = line.replace("|", "\\|")
        rows.append(f"| {question} | `{cell}` | {verdict} |")
        shown = _shown(ours).replace(folder, ".")
        records.append(f"**{question}**\n\n```\n$ sudo purebpf script -e '{line}'\n{shown}\n```\n")
        seen = [line._replace(text=line.text.replace(folder, ".")) for line in watching[0].lines]
        scenes.append(Scene(f"purebpf script -e '{line.replace('FOLDER', '.')}'",
                            _few(seen), end_s[0]))  # fmt: skip
        if "differs" in verdict:
            print(f"--- purebpf\n{ours}--- bpftrace\n{theirs}", file=sys.stderr)
    rows, records = ([text.replace("FOLDER/", "./") for text in texts] for texts in (rows, records))
    return rows, records, scenes


def _few(lines: Sequence[Line]) -> list[Line]:
    """Return the first lines, and a line that tells how many there are more."""
    if len(lines) <= _MOST_ROWS:
        return list(lines)
    rest = len(lines) - _MOST_ROWS + 1
    return [*lines[: _MOST_ROWS - 1], Line(lines[-1].at_s, f"({rest} more lines)")]


def main() -> int:
    """Compare, and write the page if asked; return 1 if an output differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bpftrace", default="bpftrace", help="its command")
    parser.add_argument("--folder", help="a folder that it sees; default: a temporary one")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    bpftrace = shlex.split(options.bpftrace)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        version = subprocess.run(
            [*bpftrace, "--version"], check=True, capture_output=True, text=True
        )
        rows, records, scenes = compare(bpftrace, folder)
    if options.write:
        write_recording(RECORDING, scenes)
        name = version.stdout.strip().replace(" v", " ")
        PAGE.write_text(
            f"# purebpf script beside {name}\n\n"
            "Both tools watched one run of `bench/workloads/beside.c` at the same time\n"
            "(`scripts/compare_with_bpftrace.py`). The table compares what they print on\n"
            "standard output. [script.md](script.md#differences-from-bpftrace) has differences.\n\n"
            "![A recording of a terminal: the one-liners are typed one after the other, and their "
            "output comes](images/script.svg)\n"
            "\n| question | one-liner | outputs |\n|---|---|---|\n" + "\n".join(rows)
            + "\n\n## What purebpf printed\n\n" + "\n".join(records),
            encoding="utf-8",
        )  # fmt: skip
    return any("differs" in row for row in rows)


if __name__ == "__main__":
    sys.exit(main())
