"""The obstacles to a sample filter in the kernel for this process, and their remedies.

Everything is tried rather than deduced: an event is opened, a pin is opened. Only then is a refusal
explained with the values that decide about it.
"""

from __future__ import annotations

import errno
import os
import stat

from purebpf.abi.bpf import bpf_prog_type
from purebpf.errors import KernelError, PurebpfError
from purebpf.loader.host import privilege
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.observe.filters.pinned_slots import BPFFS, folder_of, pin_command, slots
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["Check", "Preflight", "preflight"]


class Check(NamedTuple):
    """One condition: whether it holds, the value read, and the command that would change it."""

    name: str
    holds: bool
    found: str
    fix: str = ""


class Preflight(NamedTuple):
    """The abilities of this process.

    Attributes:
        uid: its effective user.
        loads: it may load programs.
        uses_pins: it may use those that root has pinned for its user.
        checks: the results of the checks.
    """

    uid: int
    loads: bool
    uses_pins: bool
    checks: tuple[Check, ...]

    @property
    def in_kernel(self) -> bool:
        """True if its filters run in the kernel."""
        return self.checks[0].holds and (self.loads or self.uses_pins)


def preflight(bpffs: str = BPFFS) -> Preflight:
    """Try the steps that a filtered recording of this process would take.

    Raises:
        OSError: no descriptors left.
    """
    uid = os.geteuid()
    events, own = _events(), _own_programs()
    if own.holds:  # then it does not matter what is pinned
        return Preflight(uid, loads=True, uses_pins=False, checks=(events, own))
    system = _file_system(bpffs)
    if not system.holds:
        return Preflight(uid, loads=False, uses_pins=False, checks=(events, own, system))
    pins = _pins(uid, bpffs)
    return Preflight(uid, loads=False, uses_pins=pins.holds, checks=(events, own, system, pins))


def _events() -> Check:
    name = "perf events"
    paranoid = proc.sysctl("kernel.perf_event_paranoid")
    setting = f"kernel.perf_event_paranoid is {paranoid}"
    try:
        PerfEvent.software("task-clock", pid=0, disabled=1).close()
    except KernelError:
        pass
    else:
        return Check(name, True, f"{setting}: user and kernel mode")
    try:
        PerfEvent.software("task-clock", pid=0, disabled=1, exclude_kernel=1).close()
    except KernelError as error:
        if paranoid is None:
            return Check(name, False, str(error))
        return Check(name, False, setting, "sudo sysctl kernel.perf_event_paranoid=2")
    return Check(name, True, f"{setting}: user mode of this user's own processes")


def _own_programs() -> Check:
    from purebpf.loader.features.features import have_program_type

    host = privilege.read_host()
    why, _ = privilege.advice(host, "CAP_BPF", "CAP_PERFMON")
    loads = bool(have_program_type(bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT))
    return Check("own programs", loads, "this process may load programs" if loads else why)


def _file_system(bpffs: str) -> Check:
    name = "bpf file system"
    kinds = [kind for mount_point, kind in proc.mounts() if mount_point == bpffs]
    if not kinds or kinds[-1] != "bpf":
        return Check(
            name, False, f"not mounted at {bpffs}", f"sudo mount -t bpf -o mode=0700 bpf {bpffs}"
        )
    mode = stat.S_IMODE(os.stat(bpffs).st_mode)
    if not os.access(bpffs, os.X_OK):
        problem = f"{bpffs} has mode {mode:04o}, so this user cannot enter it"
        return Check(name, False, problem, pin_command(os.geteuid(), 0, bpffs))
    return Check(name, True, f"{bpffs} has mode {mode:04o}")


def _pins(uid: int, bpffs: str) -> Check:
    name = "pinned slots"
    folder = folder_of(uid, bpffs)
    try:
        pinned = slots(uid, bpffs)
    except PurebpfError as error:
        return _check_unopened(name, error, uid, bpffs)
    if not pinned:
        return Check(name, False, f"none in {folder}", pin_command(uid, 0, bpffs))
    free = sum(not slot.taken and not slot.faults for slot in pinned)
    text = f"{free} of {len(pinned)} free"
    broken = [f"slot {slot.number}: {'; '.join(slot.faults)}" for slot in pinned if slot.faults]
    if broken:
        text = "; ".join((text, *broken))
    more = len(pinned) if broken else 2 * len(pinned)
    fix = "" if free else pin_command(uid, more, bpffs)
    return Check(name, free > 0, text, fix)


def _check_unopened(name: str, error: PurebpfError, uid: int, bpffs: str) -> Check:
    disabled = proc.sysctl("kernel.unprivileged_bpf_disabled")
    if (
        isinstance(error, KernelError)
        and error.errno == errno.EPERM
        and error.call.startswith("bpf(")
        and disabled not in ("0", None)
    ):
        problem = (
            f"kernel.unprivileged_bpf_disabled is {disabled}, and this kernel then refuses all "
            "BPF without privileges"
        )
        if disabled == "1":
            return Check(name, False, f"{problem}; 1 cannot be lowered until the next boot")
        return Check(name, False, problem, "sudo sysctl kernel.unprivileged_bpf_disabled=0")
    if isinstance(error, KernelError) and error.fix:
        problem = str(KernelError(error.call, error.errno or 0, error.what, why=error.why))
        return Check(name, False, problem, error.fix)
    return Check(name, False, str(error), pin_command(uid, 0, bpffs))
