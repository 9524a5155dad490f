"""The attacks of other users once more, on hosts that are not as ours is.

The attack tests run in a pytest of their own, in each of these places, with all their own checks:

- the kernel protects links, and files and pipes in sticky directories (fs.protected_*), as
  systemd sets it; and does not, which is the kernel's default;
- /proc shows to a user only his own processes (hidepid=2);
- a container: namespaces of its own for mounts, processes, IPC, host name, network and cgroups,
  and a root directory that was pivoted to, with its own /proc, /tmp and /dev/shm.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.support.environment import ROOT, mounted, sysctl

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "mount_namespace", "pid_namespace")

ATTACKS = (
    "tests/kernel/observe/filters/test_pinned_attacks.py",
    "tests/kernel/observe/filters/test_pinned_faults.py",
    "tests/kernel/loader/maps/test_pins_of_others.py",
    "tests/kernel/observe/symbols/test_jit_maps.py",
    "tests/unit/files/test_output_attacks.py",
)
PROTECTED = ("symlinks", "hardlinks", "regular", "fifos")
HIDDEN = mounted("mount -t proc -o hidepid=2 proc /proc")
CONTAINER = (
    *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"),
    *("--ipc", "--uts", "--net", "--cgroup", "sh", "-c"),
    """set -e
    new=$(mktemp -d)
    mount --rbind / "$new"
    mount -t proc proc "$new/proc"
    mount -t tmpfs -o mode=1777 tmpfs "$new/tmp"
    mount -t tmpfs -o mode=1777 tmpfs "$new/dev/shm"
    hostname container
    mkdir "$new/tmp/old"
    pivot_root "$new" "$new/tmp/old"
    cd /
    umount -l /tmp/old
    rmdir /tmp/old
    cd "$0"
    "$@"
    """,
    str(ROOT),
)


def attack(*prefix: str) -> dict[str, int]:
    """Run the attack tests there: how many "passed", "skipped"."""
    options = ("-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=300")
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "pytest", *options, *ATTACKS],
        env={name: value for name, value in os.environ.items() if name != "PUREBPF_FEATURES"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=2000,
    )
    assert done.returncode == 0, done.stdout
    (last,) = re.findall(r"^.*\bpassed\b.*$", done.stdout, re.MULTILINE)
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped)", last)}


@pytest.mark.needs("guest")
@pytest.mark.parametrize("protected", [0, 1])
def test_links_are_protected_or_not(protected: int) -> None:
    with ExitStack() as stack:
        for name in PROTECTED:
            stack.enter_context(sysctl(f"fs.protected_{name}", protected))
        assert attack()["passed"] > 40


@pytest.mark.nightly
def test_processes_of_others_are_hidden() -> None:
    assert attack(*HIDDEN)["passed"] > 40


@pytest.mark.nightly
def test_a_container() -> None:
    assert attack(*CONTAINER)["passed"] > 40
