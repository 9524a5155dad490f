"""Scripts on workloads with a known result: every count is exact."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "tracefs"),
    pytest.mark.any_kernel,  # guests before 5.12 (atomic exchange) and 6.9 (loops) lack features
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")
OPENS = "import os\nfor i in range({}): os.close(os.open('/dev/null', os.O_RDONLY))"


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False,
                          timeout=60)  # fmt: skip


def child(tmp_path: Path, code: str) -> str:
    """A command line that runs some Python."""
    path = tmp_path / "work.py"
    path.write_text(code)
    return f"{sys.executable} -S -E {path}"


def test_begin_and_end_run_and_the_maps_are_printed() -> None:
    done = script("-e", 'begin { printf("hi %d\\n", $1); @x["a"] = 3; } end { @y++; }', "5")
    assert (done.returncode, done.stdout) == (0, "hi 5\n\n\n@x[a]: 3\n@y: 1\n")
    assert done.stderr == "Attached 2 probes\n"


def test_a_script_ends_after_its_duration() -> None:
    done = script("-q", "--duration", "300ms", "-e", "begin { @x = 1; } interval:s:100 { @x = 2; }")
    assert (done.returncode, done.stdout) == (0, "\n\n@x: 1\n")


def test_exit_gives_the_status() -> None:
    assert script("-q", "-e", "begin { exit(7); }").returncode == 7


def test_a_wrong_script_is_refused_before_anything_is_loaded() -> None:
    done = script("-e", "begin { foo() }")
    assert done.returncode == 1
    assert (
        done.stderr
        == "stdin:1:9-14: ERROR: Unknown function: 'foo'\nbegin { foo() }\n        ~~~~~\n"
    )
    assert done.stdout == ""


def test_a_place_that_cannot_be_probed_is_named() -> None:
    done = script("-q", "-e", "uprobe:/bin/sh:main+ { }")
    assert done.returncode == 1
    assert done.stderr.startswith("purebpf script: uprobe:/bin/sh:main+: ")


def test_opens_of_a_child_are_counted_exactly(tmp_path: Path) -> None:
    text = (
        'tracepoint:syscalls:sys_enter_openat /pid == cpid && str(args.filename) == "/dev/null"/ '
        "{ @n = count(); @[str(args.filename)]++; @h = hist(args.dfd); }"
    )
    done = script("-q", "-c", child(tmp_path, OPENS.format(1009)), "-e", text)
    assert "@[/dev/null]: 1009\n" in done.stdout
    assert "@n: 1009\n" in done.stdout
    assert "[2G, 4G)            1009 |" in done.stdout
    assert done.stderr == ""


def test_events_are_printed_in_order(tmp_path: Path) -> None:
    text = (
        'tracepoint:syscalls:sys_enter_openat /pid == cpid && str(args.filename) == "/dev/null"/ '
        '{ printf("%d\\n", @++); }'
    )
    done = script("-q", "-c", child(tmp_path, OPENS.format(503)), "-e", text)
    assert done.stdout == "".join(f"{number}\n" for number in range(503)) + "\n\n@: 503\n"


def test_a_full_map_is_counted(tmp_path: Path) -> None:
    text = (
        "config = { max_map_keys = 10 } "
        'tracepoint:syscalls:sys_enter_openat /pid == cpid && str(args.filename) == "/dev/null"/ '
        "{ @n++; @[@n] = 1; }"
    )
    done = script("-q", "-c", child(tmp_path, OPENS.format(101)), "-e", text)
    assert done.stdout.count("@[") == 10
    assert "WARNING: Map full; can't update element. @ has 10 keys, and 91 " in done.stderr


def test_latencies_are_counted_once_for_each_call(tmp_path: Path) -> None:
    text = (
        "tracepoint:syscalls:sys_enter_close /pid == cpid/ { @start[tid] = nsecs; } "
        "tracepoint:syscalls:sys_exit_close /@start[tid]/ "
        "{ @ns = stats(nsecs - @start[tid]); @n++; delete(@start[tid]); }"
    )
    done = script("-q", "-c", child(tmp_path, OPENS.format(307)), "-e", text)
    number = int(done.stdout.partition("@n: ")[2].split()[0])
    assert number >= 307
    assert f".count = {number}," in done.stdout
    assert "@start" not in done.stdout


def test_one_number_is_exact_though_threads_change_it_at_once(tmp_path: Path) -> None:
    code = (
        "import os, threading\n"
        "def work():\n"
        "    for _ in range(1009): os.close(os.open('/dev/null', os.O_RDONLY))\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
    )
    text = (
        'tracepoint:syscalls:sys_enter_openat /pid == cpid && str(args.filename) == "/dev/null"/ '
        '{ @a++; @b["k"] += 2; @c = sum(3); @d = avg(5); @e = min(-1); @f = max(9); }'
    )
    done = script("-q", "-c", child(tmp_path, code), "-e", text)
    assert done.stdout == (
        f"\n\n@a: {8 * 1009}\n@b[k]: {2 * 8 * 1009}\n@c: {3 * 8 * 1009}\n@d: 5\n@e: -1\n@f: 9\n"
    )
    assert done.stderr == ""


def test_a_pattern_attaches_to_each_place(tmp_path: Path) -> None:
    text = "tracepoint:syscalls:sys_*_openat /pid == cpid/ { @[probe] = count(); }"
    done = script("-q", "-c", child(tmp_path, OPENS.format(11)), "-e", text)
    counts = dict(line[2:].split("]: ") for line in done.stdout.split("\n") if "@[" in line)
    assert set(counts) == {
        "tracepoint:syscalls:sys_enter_openat", "tracepoint:syscalls:sys_exit_openat",
    }  # fmt: skip
    assert len(set(counts.values())) == 1


def test_attach_points_are_listed() -> None:
    done = script("-l", "tracepoint:raw_syscalls:*")
    assert done.stdout == "tracepoint:raw_syscalls:sys_enter\ntracepoint:raw_syscalls:sys_exit\n"


def test_json_has_a_line_for_each_event() -> None:
    done = script("-q", "-f", "json", "-e", 'begin { printf("x"); @a = 1; print((1, "b")); }')
    assert done.stdout == (
        '{"type": "printf", "data": "x"}\n{"type": "value", "data": [1,"b"]}\n'
        '{"type": "map", "data": {"@a": 1}}\n'
    )


def test_loops_end() -> None:
    text = (
        "begin { $i = 0; while ($i < 5) { $i++; if ($i == 3) { continue; } @ += $i; } print(@); }"
    )
    assert script("-q", "-e", text).stdout.startswith("@: 12\n")


def test_strings_are_compared_and_cut() -> None:
    text = (
        'begin { $s = "hello"; if ($s == "hello" && $s != "hell") { print(str($s, 3)); } '
        '@[$s, 1] = 1; if (@["hello", 1]) { print("found"); } }'
    )
    assert script("-q", "-e", text).stdout == "he\nfound\n\n\n@[hello, 1]: 1\n"


def test_runs_of_one_script_do_not_meet() -> None:
    results: list[str] = []

    def work() -> None:
        results.append(script("-q", "-e", "begin { @++; }").stdout)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["\n\n@: 1\n"] * 3
