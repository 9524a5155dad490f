"""Every command where the file systems are not as usual."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import (
    COMMANDS,
    ROOT,
    commands_with,
    every_command,
    mounted,
    run,
    said,
)
from tests.support.host.privilege import as_user, least_user, worked

pytestmark = pytest.mark.needs("bpf", "perf_event", "mount_namespace")


LOSS_LINE = re.compile(r"^lost: ", re.MULTILINE)

NOWHERE = (
    'for place in $(awk \'$3 == "tracefs" || $3 == "debugfs" { print $2 }\' /proc/self/mounts); do',
    '    umount -l "$place"',
    "done",
)
PLACES = {
    "nowhere": NOWHERE,
    "its own": (*NOWHERE, "mount -t tracefs nodev /sys/kernel/tracing"),
    "below debugfs": (*NOWHERE, "mount -t debugfs nodev /sys/kernel/debug"),
    "somewhere else": (
        *NOWHERE,
        "place=$(mktemp -d); trap 'rmdir $place' EXIT",
        'mount -t tracefs nodev "$place"',
    ),
}
NO_BPFFS = (
    "for place in $(awk '$3 == \"bpf\" { print $2 }' /proc/self/mounts); do",
    '    umount -l "$place"',
    "done",
)

# Attaches to a tracepoint by name, which takes its number from tracefs, and counts three calls.
ATTACH = """
import os, sys
import purebpf
spec = purebpf.read_object("tests/data/load_attach.bpf.o")
spec = spec.set(target_pid=os.getpid(), target_call=int(sys.argv[1])).only("on_tracepoint")
with purebpf.load(spec) as obj:
    obj.attach()
    for _ in range(3):
        os.getpriority(os.PRIO_PROCESS, 0)
    print(obj.globals["tracepoint_hits"])
"""
GETPRIORITY = {"x86_64": 140, "aarch64": 141}[os.uname().machine]


@pytest.mark.needs("tracefs")
@pytest.mark.parametrize(("name", "place"), commands_with(PLACES))
def test_tracefs_is_found_wherever_it_is_mounted(name: str, place: str) -> None:
    assert worked(run(name, prefix=mounted(*PLACES[place])))


@pytest.mark.needs("tracefs")
@pytest.mark.parametrize("place", PLACES)
def test_a_tracepoint_is_found(place: str) -> None:
    line = [*mounted(*PLACES[place]), sys.executable, "-c", ATTACH, str(GETPRIORITY)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.needs("tracefs", "setpriv")
def test_a_tracepoint_without_tracefs_and_the_right_to_mount_it() -> None:
    user = as_user("bpf and perfmon")
    line = [*mounted(*NOWHERE), *user, sys.executable, "-c", ATTACH, str(GETPRIORITY)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "purebpf.errors.NotSupportedError: tracefs: it is not mounted, and opening it without "
        "a mount failed with EPERM; mount it with: mount -t tracefs nodev /sys/kernel/tracing"
    )


@every_command
def test_no_bpf_file_system(name: str) -> None:
    assert worked(run(name, prefix=mounted(*NO_BPFFS)))


@pytest.mark.any_kernel
@every_command
def test_without_proc_the_error_says_so(name: str) -> None:
    result = run(name, *COMMANDS[name], prefix=mounted("mount -t tmpfs tmpfs /proc"))
    assert result.returncode == 1
    assert "/proc is not mounted" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.any_kernel
@every_command
def test_a_result_on_a_read_only_file_system(name: str, tmp_path: Path) -> None:
    read_only = mounted(f"mount -t tmpfs -o ro tmpfs '{tmp_path}'")
    result = run(name, "-o", f"{tmp_path}/out", "50", prefix=read_only)  # fails before the 50 s
    assert said(result) == f"purebpf {name}: output {tmp_path}/out: open(2) failed with EROFS"
    assert (result.returncode, result.stdout) == (1, "")


@pytest.mark.any_kernel
@every_command
def test_every_file_system_is_read_only(name: str) -> None:
    frozen = "mount -o remount,bind,ro /", "! mountpoint -q /tmp || mount -o remount,bind,ro /tmp"
    assert worked(run(name, prefix=mounted(*frozen)))


@pytest.mark.any_kernel
@every_command
def test_a_result_that_does_not_fit(name: str, tmp_path: Path) -> None:
    full = mounted(
        f"mount -t tmpfs -o size=4k tmpfs '{tmp_path}'",
        f"dd if=/dev/zero of='{tmp_path}/filler' bs=4k count=1 2>/dev/null",
    )
    result = run(name, "-o", f"{tmp_path}/out", *COMMANDS[name], prefix=full)
    expected = f"purebpf {name}: output {tmp_path}/out: write(2) failed with ENOSPC"
    assert said(result).endswith(expected), result.stderr
    assert result.returncode == 1


@pytest.mark.any_kernel
@every_command
def test_a_result_beyond_the_limit_leaves_no_half_of_it(name: str, tmp_path: Path) -> None:
    result = run(name, "-o", f"{tmp_path}/out", *COMMANDS[name], prefix=("prlimit", "--fsize=0"))
    expected = f"purebpf {name}: output {tmp_path}/out: write(2) failed with EFBIG"
    assert said(result).endswith(expected), result.stderr
    assert result.returncode == 1
    assert not list(tmp_path.iterdir())


HIDDEN = pytest.mark.parametrize("hidepid", [1, 2])


@pytest.mark.needs("setpriv")
@HIDDEN
@every_command
def test_processes_are_hidden(name: str, hidepid: int) -> None:
    """A user without CAP_SYS_PTRACE: /proc lists other users' processes without data (hidepid=1),
    or not at all.
    """
    hidden = mounted(f"mount -t proc -o hidepid={hidepid} proc /proc")
    user = as_user(least_user(name))
    assert worked(run(name, prefix=(*hidden, *user)))


@pytest.mark.needs("setpriv")
@pytest.mark.parametrize("name", ["profile", "offcpu", "dump", "trace", "stat", "mem"])
@HIDDEN
def test_a_hidden_process_has_not_ended(name: str, hidepid: int) -> None:
    hidden = mounted(f"mount -t proc -o hidepid={hidepid} proc /proc")
    prefix = (*hidden, *as_user(least_user(name)))
    target = () if name == "dump" else ("-p",)
    result = run(name, *target, str(os.getpid()), prefix=prefix)
    assert result.returncode == 1
    assert f"{os.getpid()} lives, and /proc does not show it" in said(result)


@pytest.mark.needs("setpriv")
@HIDDEN
def test_triage_says_that_it_does_not_see_hidden_processes(hidepid: int) -> None:
    hidden = mounted(f"mount -t proc -o hidepid={hidepid} proc /proc")
    result = run("triage", "1", prefix=(*hidden, *as_user(least_user("triage"))))
    assert "not measured: other users' processes" in result.stdout, result.stderr


@pytest.mark.needs("pid_namespace")
@every_command
def test_a_pid_namespace(name: str) -> None:
    namespace = ("unshare", "--pid", "--fork", "--mount-proc")
    assert worked(run(name, prefix=namespace))


@pytest.mark.needs("pid_namespace")
@every_command
def test_a_pid_namespace_with_the_proc_of_another(name: str) -> None:
    """Its own number there is not the one that the kernel means: it must not be mistaken."""
    result = run(name, prefix=("unshare", "--pid", "--fork"))
    assert worked(result)
