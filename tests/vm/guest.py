"""Run one command as root inside a kernel under QEMU.

The guest sees the host's / read-only below an overlay, so Python, the environment and the tree are
where they are on the host and writes vanish; one host folder is writable at /run/out. A guest of
another architecture has a root of its own instead, with the tree and its environment in it.

Single-threaded emulation on purpose: with QEMU before 8.1, multi-threaded TCG races with a guest
that patches its own text, which is what attaching BPF does, and the guest dies.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.vm import initramfs
from tests.vm.kernels import Kernel

__all__ = ["MACHINES", "Machine", "Outcome", "run"]

BOOT_S = 180
"""Seconds until the command must have begun; on an idle host it takes three."""


class Machine(NamedTuple):
    """What QEMU needs to know of an architecture: program, board, CPU, console, accelerator."""

    program: str
    board: str
    cpu: str
    console: str


_OFF = "erms=off,fsrm=off,adx=off"
MACHINES = {
    # Without fast string copies and ADX: with them (QEMU 7.2) a kernel of 6.12 that faulted had the
    # direction flag set, copied backwards over its own memory, and died.
    "amd64": Machine("qemu-system-x86_64", "q35", f"max,la57=off,{_OFF}", "ttyS0"),
    # a CPU without pointer authentication, which is slow to emulate
    "arm64": Machine("qemu-system-aarch64", "virt,gic-version=3", "cortex-a72", "ttyAMA0"),
}


class Outcome(NamedTuple):
    """What a guest left.

    Attributes:
        began: whether the command was started.
        status: its exit status; None when the guest died, or ran out of time, before its end.
        output: what it wrote.
        console: what the kernel wrote.
    """

    began: bool
    status: int | None
    output: str
    console: str


def run(kernel: Kernel, command: str, out: Path, *, timeout_s: float, cpu: str = "") -> Outcome:
    """Boot `kernel`, run the shell text `command` in the current folder, power off.

    `out` is the folder at /run/out; `console`, `output` and `status` appear in it as they grow.
    `cpu` is another than that of `MACHINES`, as QEMU names it.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("console", "output", "status"):
        (out / name).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="purebpf-vm-") as folder:
        archive = Path(folder, "initrd")
        archive.write_bytes(initramfs.build(kernel, f"cd {shlex.quote(os.getcwd())}\n{command}\n"))
        guest = subprocess.Popen(
            _qemu(kernel, archive, out.resolve(), cpu),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            if _waited(guest, BOOT_S, lambda: "began" in _read(out / "status")):
                _waited(guest, timeout_s, lambda: "exit=" in _read(out / "status"))
        finally:
            guest.kill()
            guest.wait()
    told = _read(out / "status")
    ended = re.search(r"exit=(\d+)", told)
    return Outcome(
        "began" in told,
        int(ended[1]) if ended else None,
        _read(out / "output"),
        _read(out / "console"),
    )


def _waited(guest: subprocess.Popen[bytes], patience_s: float, until: Callable[[], bool]) -> bool:
    """Whether `until` came true, or the guest ended, in time."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if until():
            return True
        try:
            guest.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        return True
    return False


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _qemu(kernel: Kernel, archive: Path, out: Path, cpu: str) -> list[str]:
    machine = MACHINES[kernel.architecture]
    # Every CPU of the guest reads one clock. Where the host is busy, the guest takes it for several
    # that disagree; then every look at the time costs a trap, and samples are missed. It also takes
    # its timer for broken, and panics, if that does not tick while the guest waits for its turn.
    options = "quiet panic=-1 oops=panic mitigations=off nokaslr tsc=reliable no_timer_check"
    share = "local,security_model=none,multidevs=remap"
    arguments = ["setpriv", "--pdeathsig", "TERM"]  # no guest outlives its test run
    arguments += [machine.program, "-nodefaults", "-no-user-config", "-no-reboot"]
    arguments += ["-display", "none", "-machine", machine.board, "-smp", "3", "-m", "1024M"]
    arguments += ["-accel", "tcg,thread=single", "-cpu", cpu or machine.cpu]
    arguments += ["-kernel", str(kernel.image), "-initrd", str(archive)]
    arguments += ["-append", f"console={machine.console} {options}"]
    arguments += ["-serial", f"file:{out}/console"]
    for tag, path, mode in (("root", "/", ",readonly=on"), ("out", str(out), "")):
        arguments += ["-fsdev", f"{share},id={tag},path={path}{mode}"]
        arguments += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return arguments
