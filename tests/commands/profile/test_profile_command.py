"""The profiler as a user meets it: arguments in; text, files and statuses out."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT, Run, Workloads

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")

LOSS_LINE = re.compile(
    r"^loss: expected=\d+ seen=\d+ map_full=\d+ map_busy=\d+ stacks_lost=\d+ truncated=\d+ "
    r"unavailable=\d+ outside_namespace=\d+ sideband_lost=\d+ names_skipped=\d+ "
    r"names_cut=\d+ (?:(?:python|java|v8)_\w+=\d+ )*"  # of whatever else the machine runs
    r"unnamed=\d+\.\d% unknown=\d+\.\d%$",
    re.MULTILINE,
)
BLOCK = re.compile(r"\A(?:    \S.*\n)*    -                (\S+) \((\d+)\)\n        (\d+)\Z")


def loss(stderr: str) -> dict[str, str]:
    """The words of the loss line."""
    found = LOSS_LINE.search(stderr)
    assert found, stderr
    return dict(word.split("=") for word in found.group().split()[1:])


def said(result: subprocess.CompletedProcess[str]) -> str:
    """Standard error without its line breaks."""
    return " ".join(result.stderr.split())


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start the profiler; it samples once its first line can be read."""
    command = [sys.executable, "-m", "purebpf", "profile", "-v", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, **options
    )


@pytest.mark.any_kernel
def test_text_has_a_title_and_a_block_for_each_stack(workloads: Workloads, profile: Run) -> None:
    with workloads.running("split") as pid:
        result = profile("--layout", "bcc", "-p", str(pid), "-F", "199", "0.5")
    assert result.returncode == 0, result.stderr
    title, empty, *rest = result.stdout.split("\n", 2)
    assert title == (f"Sampling at 199 Hertz of PID [{pid}] by user + kernel stack for 0.5 secs.")
    assert empty == ""
    blocks = [BLOCK.match(block) for block in rest[0].removesuffix("\n\n").split("\n\n")]
    assert all(block and block[1] == "split" and int(block[2]) == pid for block in blocks)
    counts = [int(block[3]) for block in blocks if block]
    assert counts == sorted(counts)
    assert "main+0x" in result.stdout
    assert " [split]\n" in result.stdout


@pytest.mark.any_kernel
def test_folded_has_nothing_else_on_standard_output(workloads: Workloads, profile: Run) -> None:
    with workloads.running("split") as pid:
        result = profile("-f", "-p", str(pid), "-F", "199", "0.5")
    lines = result.stdout.splitlines()
    assert lines
    assert all(re.fullmatch(r"split(;[^;]+)* \d+", line) for line in lines), result.stdout


def test_json_adds_up(workloads: Workloads, profile: Run) -> None:
    with workloads.running("split"):
        result = profile("--format", "json", "-F", "199", "0.5")
    found = json.loads(result.stdout)
    about, lost = found["about"], found["loss"]
    assert found["total"] == sum(row["weight"] for row in found["stacks"])
    assert found["total"] == about["counted"] - about["own"]
    seen = about["counted"] + about["idle"] + about["filtered"] + lost["map_full"]
    assert seen == lost["seen"]
    assert loss(result.stderr)["seen"] == str(seen)
    assert about["frequency_hz"] == 199


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_prints(workloads: Workloads, number: signal.Signals) -> None:
    with workloads.running("split") as pid, start("-p", str(pid), "-F", "999") as profiler:
        assert profiler.stdout is not None
        assert profiler.stdout.readline().endswith("... Hit Ctrl-C to end.\n")
        with pytest.raises(subprocess.TimeoutExpired):  # it does not end by itself
            profiler.wait(0.3)
        profiler.send_signal(number)
        output, errors = profiler.communicate()
    assert profiler.returncode == 0
    assert "spend_seventy" in output
    assert loss(errors)


@pytest.mark.any_kernel
def test_a_closed_pipe_is_silent(workloads: Workloads) -> None:
    with workloads.running("split") as pid, start("-p", str(pid), "0.3") as profiler:
        assert profiler.stdout is not None
        assert profiler.stderr is not None
        profiler.stdout.readline()
        profiler.stdout.close()
        errors = profiler.stderr.read()
    assert profiler.returncode == 0
    assert LOSS_LINE.search(errors)
    assert "Broken" not in errors
    assert "Traceback" not in errors


@pytest.mark.any_kernel
def test_a_file_is_complete_when_it_appears(
    workloads: Workloads, profile: Run, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    with workloads.running("split") as pid:
        result = profile("-p", str(pid), "-o", str(target), "-F", "199", "0.3")
    assert result.returncode == 0
    assert result.stdout == ""
    assert result.stderr.startswith("Sampling at 199 Hertz")
    assert target.read_text().startswith("Sampling at 199 Hertz")
    assert "spend_seventy" in target.read_text()
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.any_kernel
def test_a_wrong_output_path_costs_no_measurement(profile: Run, tmp_path: Path) -> None:
    result = profile("-o", str(tmp_path / "no" / "out"), "50")
    assert result.returncode == 1
    assert "open(2) failed with ENOENT" in said(result)


@pytest.mark.any_kernel
@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -KILL $$", 137)])
def test_the_commands_status_is_passed_through(profile: Run, script: str, status: int) -> None:
    assert profile("--", "sh", "-c", script).returncode == status


@pytest.mark.any_kernel
@pytest.mark.parametrize(("name", "status"), [("/no/such/program", 127), ("/etc", 126)])
def test_a_command_that_cannot_run(profile: Run, tmp_path: Path, name: str, status: int) -> None:
    result = profile("-o", str(tmp_path / "out"), "--", name)
    assert os.listdir(tmp_path) == []
    assert result.returncode == status
    assert f"command '{name}': execvp(3) failed" in said(result)


def test_a_commands_children_are_sampled(workloads: Workloads, profile: Run) -> None:
    script = f"for i in 1 2 3; do {workloads.path('brief')}; done"
    result = profile("-f", "-F", "999", "--", "sh", "-c", script)
    assert result.returncode == 0
    assert re.search(r"^brief;.*;main;burn_briefly", result.stdout, re.MULTILINE)


def test_children_shorter_than_a_period_are_sampled(tmp_path: Path, profile: Run) -> None:
    """As a `make test` has them: each lives for a millisecond, and together they take a second."""
    both = "expr $i + 1 >/dev/null; grep -q root /etc/passwd"
    script = f"i=0; while [ $i -lt 300 ]; do {both}; i=$((i+1)); done"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = profile("-o", str(tmp_path / "out.json"), "--", "sh", "-c", script)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0
    saved = json.loads((tmp_path / "out.json").read_text())
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    counted = saved["about"]["counted"]
    assert 0.2 * 49 * used_s < counted < 1.2 * 49 * used_s, (counted, used_s)
    assert {"expr", "grep"} <= {stack["comm"] for stack in saved["stacks"]}


def test_a_command_ends_with_its_duration(workloads: Workloads, profile: Run) -> None:
    for seconds in ("0.3", "5"):  # a busy machine may take longer to start the program
        result = profile("-f", seconds, "--", workloads.path("split"))
        assert result.returncode == 128 + signal.SIGTERM
        if re.search(r"^split;.*;main;spend_(seventy|thirty)", result.stdout, re.MULTILINE):
            return
    pytest.fail(result.stdout)


@pytest.mark.any_kernel
def test_a_command_keeps_its_streams(profile: Run) -> None:
    result = profile("-f", "--", "sh", "-c", "echo out; echo err >&2")
    assert result.stdout.startswith("out\n")
    assert "err\n" in result.stderr


@pytest.mark.any_kernel
def test_no_such_process(profile: Run) -> None:
    result = profile("-p", "4194304", "1")
    assert result.returncode == 1
    assert "no process or thread has ID 4194304" in said(result)


@pytest.mark.any_kernel
def test_a_thread_is_not_taken_for_a_process(workloads: Workloads, profile: Run) -> None:
    with workloads.running("still") as pid:
        (tid,) = (name for name in os.listdir(f"/proc/{pid}/task") if name != str(pid))
        result = profile("-p", tid, "1")
    assert result.returncode == 1
    assert f"{tid} is a thread of process {pid}: select it with -L {tid}" in said(result)


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("-G", "/no/such/cgroup"), "cgroup directory /no/such/cgroup"),
        (("-G", "/tmp"), "the path is not a cgroup v2 directory"),
        (("--cgroupmap", "/no/such/map"), "/no/such/map"),
        (("--mntnsmap", "/no/such/map"), "/no/such/map"),
        (("-C", "4096"), "CPU 4096"),
        (("-F", "100000000"), "kernel.perf_event_max_sample_rate"),
    ],
)
def test_what_is_not_there_is_said_in_one_paragraph(
    profile: Run, arguments: tuple[str, ...], problem: str
) -> None:
    result = profile(*arguments, "50")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("purebpf profile: ")
    assert problem in said(result)


@pytest.mark.needs("setpriv")
def test_without_capabilities_the_error_names_them(profile: Run) -> None:
    capless = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
    result = profile("50", prefix=capless)
    text = said(result)
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    assert result.returncode == 1
    assert "CAP_BPF and CAP_PERFMON" in text
    assert f"kernel.perf_event_paranoid is {paranoid}" in text
    assert f"sudo {sys.executable} -P -m purebpf profile -v 50" in text
    assert result.stdout == ""


@pytest.mark.any_kernel
def test_help_and_usage_errors_load_nothing_of_the_kernel_side() -> None:
    for arguments, status in ((["--help"], 0), (["-F", "0"], 2)):
        command = [sys.executable, "-X", "importtime", "-m", "purebpf", "profile", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert result.returncode == status
        for heavy in ("purebpf.loader", "purebpf.elf", "elftools", "construct", "pyroute2"):
            assert heavy not in result.stderr


def test_a_full_count_table_is_reported(workloads: Workloads, profile: Run) -> None:
    with workloads.running("split"), workloads.running("calls"):
        result = profile("-f", "--strict", "--hash-storage-size", "1", "-F", "499", "0.5")
    assert result.returncode == 3
    assert int(loss(result.stderr)["map_full"]) > 0
    assert "(table of counts full: --hash-storage-size 2)" in said(result)
    assert len(result.stdout.splitlines()) == 1, "the one count that found a place"


def test_a_full_stack_table_is_reported(workloads: Workloads, profile: Run) -> None:
    with workloads.running("split") as pid:
        options = ("--strict", "--stack-storage-size", "1", "-U", "-p", str(pid))
        result = profile("-f", *options, "-F", "999", "0.5")
    found = loss(result.stderr)
    assert result.returncode == 3
    assert int(found["stacks_lost"]) > 0
    assert "(table full: --stack-storage-size 2)" in said(result)
    counts = dict(line.rsplit(" ", 1) for line in result.stdout.splitlines())
    assert int(counts["split;[Missed User Stack]"]) == int(found["stacks_lost"]), (
        "samples without a stack are still counted"
    )


def test_a_sleeping_target_is_reported(profile: Run) -> None:
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        result = profile("-p", str(sleeper.pid), "0.2")
        sleeper.kill()
    assert result.returncode == 0
    assert "no samples: the target did not run on a CPU during the run" in result.stderr


@pytest.mark.any_kernel
def test_output_to_a_device_is_written_in_place(profile: Run) -> None:
    assert profile("-o", os.devnull, "0.1").returncode == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_native_image_of_graalvm_is_named(tmp_path: Path, profile: Run) -> None:
    """Its file has a section with objects, and needs no debug package."""
    source, program = tmp_path / "image.c", tmp_path / "image"
    source.write_text(
        '__attribute__((section(".svm_heap"))) char heap[4096] = "x";\n'
        "int main(void) { for (volatile unsigned long n = 0;; n++) heap[n % 4096]++; }\n"
    )
    subprocess.run(["gcc", "-O1", "-s", "-o", program, source], check=True)
    with subprocess.Popen([program]) as process:
        try:
            result = profile("-U", "-p", str(process.pid), "-F", "199", "1")
        finally:
            process.kill()
    assert result.returncode == 0, result.stderr
    hint = f"the functions of a stripped native image of GraalVM (PID {process.pid}) cannot be read"
    assert hint in said(result)
    assert "debug package" not in said(result)
