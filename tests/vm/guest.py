"""Run one command as root inside a kernel under QEMU.

The guest sees the host's / read-only below an overlay, so Python, the environment and the tree are
where they are on the host and writes vanish; one host folder is writable at /run/out.

Single-threaded emulation on purpose: with QEMU before 8.1, multi-threaded TCG races with a guest
that patches its own text, which is what attaching BPF does, and the guest dies.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.vm import initramfs
from tests.vm.kernels import Kernel


class Outcome(NamedTuple):
    """What a guest left: the command's exit status (None if it died), its output, its console."""

    status: int | None
    output: str
    console: str


def run(
    kernel: Kernel,
    command: str,
    out: Path,
    *,
    memory_mb: int = 1024,
    timeout_s: float = 1500,
) -> Outcome:
    """Boot `kernel`, run the shell text `command` in the current folder, power off."""
    with tempfile.TemporaryDirectory(prefix="purebpf-vm-") as name:
        folder = Path(name)
        script = f"cd {shlex.quote(os.getcwd())}\n{command}\n"
        (folder / "initrd").write_bytes(initramfs.build(kernel, script))
        with (folder / "output").open("wb") as output:
            guest = subprocess.Popen(
                _qemu(kernel, folder, out, memory_mb),
                stdin=subprocess.DEVNULL,
                stdout=output,
            )
            try:
                guest.wait(timeout_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                guest.kill()
                guest.wait()
        status = re.search(r"exit=(\d+)", _read(folder / "status"))
        return Outcome(
            int(status[1]) if status else None,
            _read(folder / "output"),
            _read(folder / "console"),
        )


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _qemu(kernel: Kernel, folder: Path, out: Path, memory_mb: int) -> list[str]:
    share = "local,security_model=none,multidevs=remap"
    arguments = ["setpriv", "--pdeathsig", "TERM"]  # no guest outlives its test run
    arguments += ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot"]
    arguments += ["-display", "none", "-machine", "q35", "-smp", "3", "-m", f"{memory_mb}M"]
    arguments += ["-accel", "tcg,thread=single", "-cpu", "max,la57=off"]
    arguments += ["-kernel", str(kernel.image), "-initrd", f"{folder}/initrd"]
    arguments += ["-append", "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr"]
    arguments += ["-serial", f"file:{folder}/console"]
    arguments += ["-chardev", "stdio,id=command,signal=off", "-serial", "chardev:command"]
    arguments += ["-serial", f"file:{folder}/status"]
    for tag, path, mode in (("root", "/", ",readonly=on"), ("out", out.resolve(), "")):
        arguments += ["-fsdev", f"{share},id={tag},path={path}{mode}"]
        arguments += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return arguments
