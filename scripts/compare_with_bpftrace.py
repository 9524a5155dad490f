"""Type one-liners beside bpftrace, and write the comparison as docs/script-beside-bpftrace.md.

    python scripts/compare_with_bpftrace.py [--bpftrace COMMAND] [--write]

Both tools watch one run of bench/workloads/beside.c at the same time. Needs root, gcc and bpftrace.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "script-beside-bpftrace.md"
_DRAIN_S = 1.5
_MOST_LINES = 9
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


def run(tools: Sequence[Sequence[str]], text: str, workload: Sequence[str]) -> list[str]:
    """Return what each tool prints about one run of the workload."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    watching = [subprocess.Popen([*tool, "-e", text], **pipes) for tool in tools]  # type: ignore[call-overload]
    for process in watching:
        while "ttached" not in (process.stderr.readline() or "ttached"):
            pass
    if "tracepoint:" in text or "probe:" in text or "software:" in text:
        subprocess.run(workload, check=True)
        time.sleep(_DRAIN_S)
        for process in watching:
            process.send_signal(signal.SIGINT)
    return [process.communicate(timeout=60)[0] for process in watching]


def _verdict(ours: str, theirs: str) -> str:
    if ours == theirs:
        return "byte for byte"
    rows = (sorted(text.split("\n")) for text in (ours, theirs))
    return "equal rows, ties in another order" if next(rows) == next(rows) else "**differs**"


def _shown(text: str) -> str:
    lines = text.strip("\n").split("\n")
    more = [f"({len(lines) - _MOST_LINES} more lines)"] if len(lines) > _MOST_LINES else []
    return "\n".join(lines[:_MOST_LINES] + more)


def compare(bpftrace: Sequence[str], folder: str) -> tuple[list[str], list[str]]:
    """Return the rows of a table, and what was printed about each question."""
    source = str(ROOT / "bench" / "workloads" / "beside.c")
    subprocess.run(["gcc", "-O1", "-o", f"{folder}/beside", source], check=True)
    shutil.copy("/bin/true", f"{folder}/besides")
    tools = [[sys.executable, "-m", "purebpf", "script"], bpftrace]
    rows, records = [], []
    for question, line in LINES.items():
        text = line.replace("FOLDER", folder)
        ours, theirs = run(tools, text, [f"{folder}/beside", f"{folder}/besides"])
        verdict = _verdict(ours, theirs)
        print(f"{question} {verdict}", flush=True)
        cell = line.replace("|", "\\|")
        rows.append(f"| {question} | `{cell}` | {verdict} |")
        shown = _shown(ours).replace(folder, ".")
        records.append(f"**{question}**\n\n```\n$ sudo purebpf script -e '{line}'\n{shown}\n```\n")
        if "differs" in verdict:
            print(f"--- purebpf\n{ours}--- bpftrace\n{theirs}", file=sys.stderr)
    return [row.replace("FOLDER/", "./") for row in rows], [
        record.replace("FOLDER/", "./") for record in records
    ]


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
        rows, records = compare(bpftrace, folder)
    if options.write:
        name = version.stdout.strip().replace(" v", " ")
        PAGE.write_text(
            f"# purebpf script beside {name}\n\n"
            "Both tools watched one run of `bench/workloads/beside.c` at the same time\n"
            "(`scripts/compare_with_bpftrace.py`). The table compares what they print on\n"
            "standard output. [script.md](script.md#differences-from-bpftrace) has differences.\n"
            "\n| question | one-liner | outputs |\n|---|---|---|\n" + "\n".join(rows)
            + "\n\n## What purebpf printed\n\n" + "\n".join(records),
            encoding="utf-8",
        )  # fmt: skip
    return any("differs" in row for row in rows)


if __name__ == "__main__":
    sys.exit(main())
