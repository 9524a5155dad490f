"""A link with the name of bpftrace behaves as bpftrace; `purebpf -e` is `purebpf script -e`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

START = "import sys; from purebpf.__main__ import main; sys.exit(main())"


@pytest.fixture(scope="module")
def bpftrace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with that name."""
    path = tmp_path_factory.mktemp("bin") / "bpftrace"
    path.write_text(f"#!{sys.executable} -P\n{START}\n")
    path.chmod(0o755)
    return path


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_the_name_is_in_comm(bpftrace: Path) -> None:
    assert run(bpftrace, "-q", "-e", "begin { print(comm); }").stdout == "bpftrace\n\n\n"


def test_the_version_is_of_the_followed_bpftrace(bpftrace: Path) -> None:
    assert run(bpftrace, "--version").stdout.startswith("bpftrace v0.27.1 (purebpf ")


def test_usage_is_printed_for_help_and_wrong_options(bpftrace: Path) -> None:
    assert run(bpftrace, "-h").stdout.startswith("USAGE:\n")
    done = run(bpftrace, "--nonsense")
    assert (done.returncode, "\nUSAGE:\n" in done.stderr) == (1, True)
    done = run(bpftrace, "-e", "begin { }", "--aa=20")
    assert (done.returncode, "\nUSAGE:\n" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-p", "a1"), "ERROR: Failed to parse pid: invalid integer: a1"),
        (("-p", "1a"), "ERROR: Failed to parse pid: invalid trailing bytes: 1a"),
        (("-p", "5000000"), "ERROR: Pid out of range: 5000000"),
        (("-f", "jsonx"), 'ERROR: Invalid output format "jsonx"'),
        (("no.bt",), "ERROR: failed to open file 'no.bt': No such file or directory"),
    ],
)
def test_errors_are_in_its_words(bpftrace: Path, words: tuple[str, ...], message: str) -> None:
    done = run(bpftrace, *words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == message


def test_the_name_is_in_the_list_of_processes(bpftrace: Path) -> None:
    text = 'begin { system("cat /proc/%d/cmdline", pid); }'
    done = run(bpftrace, "-q", "--unsafe", "-e", text)
    assert done.stdout.rstrip("\n\0") == f"bpftrace\0-q\0--unsafe\0-e\0{text}"


def test_quotes_in_a_command_are_characters_as_for_bpftrace(bpftrace: Path) -> None:
    done = run(bpftrace, "-q", "-c", "echo 'a  b'", "-e", "interval:s:99 { }")
    assert done.stdout == "'a b'\n\n\n"
    script = (sys.executable, "-P", "-m", "purebpf", "script")
    assert run(*script, "-q", "-c", "echo 'a  b'", "-e", "interval:s:99 { }").stdout == "a  b\n\n\n"


def test_benchmarks_are_a_mode(bpftrace: Path) -> None:
    done = run(bpftrace, "--mode", "bench", "-e", "bench:a { @++; }")
    assert done.stdout.splitlines()[2].split()[0] == "a"


def test_minus_e_needs_no_command() -> None:
    done = run(sys.executable, "-P", "-m", "purebpf", "-e", "begin { print(1); }")
    assert done.stdout == "1\n\n\n"


def test_options_of_a_script_and_a_filter_of_probes() -> None:
    command = (sys.executable, "-P", "-m", "purebpf", "script", "-q")
    text = 'begin { print(($1, getopt("n", 1), $2)); }'
    assert run(*command, "-e", text, "a", "--", "--n=5", "b").stdout == "(a, 5, b)\n\n\n"
    text = "interval:ms:1 { exit(3); } interval:ms:2 { exit(4); }"
    assert run(*command, "--probe-filter", ":2$", "-e", text).returncode == 4


def test_probes_of_a_script_fields_and_types_are_listed(tmp_path: Path) -> None:
    command = (sys.executable, "-P", "-m", "purebpf", "script")
    path = tmp_path / "x.bt"
    path.write_text("tracepoint:raw_syscalls:sys_* { } interval:ms:5 { }")
    assert run(*command, "-l", str(path)).stdout == (
        "tracepoint:raw_syscalls:sys_enter\ntracepoint:raw_syscalls:sys_exit\ninterval:ms:\n"
    )
    assert run(*command, "-lv", "tracepoint:raw_syscalls:sys_exit").stdout == (
        "tracepoint:raw_syscalls:sys_exit\n    long id\n    long ret\n"
    )
    assert run(*command, "-lv", "struct list_head").stdout == (
        "vmlinux: struct list_head {\n\tstruct list_head *next;\n\tstruct list_head *prev;\n};\n\n"
    )


def test_points_and_types_are_listed_in_the_order_of_the_patterns() -> None:
    command = (sys.executable, "-P", "-m", "purebpf", "script")
    patterns = "struct list_h*, tracepoint:raw_syscalls:sys_ex*, enum bpf_cmd"
    assert run(*command, "-l", patterns).stdout == (
        "struct list_head\ntracepoint:raw_syscalls:sys_exit\nenum bpf_cmd\n"
    )
    lines = run(*command, "-lv", patterns).stdout.splitlines()
    assert lines[:6] == [
        "vmlinux: struct list_head {", "\tstruct list_head *next;", "\tstruct list_head *prev;",
        "};", "", "tracepoint:raw_syscalls:sys_exit",
    ]  # fmt: skip
    assert lines[8] == "vmlinux: enum bpf_cmd {"


def test_a_filter_of_probes_that_is_no_pattern_is_told() -> None:
    done = run(
        sys.executable, "-P", "-m", "purebpf", "script", "--probe-filter", "[", "-e", "end {}"
    )
    assert "Invalid --probe-filter regex '['" in done.stderr


def test_a_library_is_shown_with_the_path_that_was_found() -> None:
    command = (sys.executable, "-P", "-m", "purebpf", "script", "-c", sys.executable + " -V")
    found = run(*command, "-e", "uprobe:libc.so.6:free { print(probe); exit(); }").stdout
    path = found.split(":")[1]
    assert Path(path).is_absolute()
    assert Path(path).is_file()
    assert f"uprobe:{path}:free\n" in found


def test_a_list_of_functions_takes_the_place_of_that_of_the_kernel(tmp_path: Path) -> None:
    command = (sys.executable, "-P", "-m", "purebpf", "script")
    path = tmp_path / "functions"
    path.write_text("vfs_write\nvfs_writev [ext4]\n")
    listed = run(*command, "--traceable-functions", str(path), "-l", "kprobe:*").stdout
    assert listed == "kprobe:vfs_write\nkprobe:vfs_writev\n"
    done = run(*command, "--traceable-functions", "/dev/null", "-e", "kprobe:vfs_read { }")
    assert "ERROR: No matches for kprobe vfs_read" in done.stderr
    missing = run(*command, "--traceable-functions", str(tmp_path / "none"), "-l", "kprobe:*")
    assert "No such file or directory" in missing.stderr


def test_kprobes_that_cannot_be_attached_are_left_out_if_the_script_says_so(tmp_path: Path) -> None:
    command = (sys.executable, "-P", "-m", "purebpf", "script", "--dry-run")
    path = tmp_path / "functions"
    path.write_text("no_such_function\n")
    for choice, warning in (("warn", "WARNING: "), ("ignore", "")):
        text = f"config = {{ missing_probes = {choice} }} begin {{ }} kprobe:no_such_function {{ }}"
        done = run(*command, "--traceable-functions", str(path), "-e", text)
        assert done.returncode == 0
        lines = done.stderr.splitlines()
        assert lines[-1] == "Attached 1 probe"
        assert len(lines) == 1 if not warning else lines[0].startswith(warning)
