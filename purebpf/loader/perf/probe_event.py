"""kprobes and uprobes as perf events: the PMUs `kprobe` and `uprobe` (Linux 4.17), or tracefs.

A probe lives as long as its event. The place is either a name and an offset (config1 points to
the name of a kernel function, or to the path of a file; config2 is the offset), as perf_event_open
(2) says under `kprobe_func` and `uprobe_path`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_names import Event
from purebpf.loader.perf.probe import EVERY_PROCESS, Probe
from purebpf.loader.perf.probe_threads import ProbedThread
from purebpf.syscall import pmu
from purebpf.syscall.buffer import Buffer

if TYPE_CHECKING:
    from purebpf.loader.perf.probe_tracefs import TracedProbe

__all__ = ["has_syscall_wrapper", "open_probe", "syscall_function"]

_ANY_CPU = -1
_SEMAPHORE_SHIFT = 32
"""Where the uprobe PMU has ref_ctr_offset (format/ref_ctr_offset).

Linux 4.20: commit a6ca88b241d5, "trace_uprobe: support reference counter in fd-based uprobe".
"""
_WRAPPERS = {
    "x86_64": "x64",
    "i686": "ia32",
    "s390x": "s390x",
    "aarch64": "arm64",
    "riscv64": "riscv",
}
"""What system call functions are called after, by machine: `__x64_sys_openat`."""


def open_probe(probe: Probe) -> PerfEvent | TracedProbe:
    """The probe as a perf event; where the kernel has no PMU for it, through tracefs.

    Raises:
        NotSupportedError: a kernel without such probes.
        KernelError: ENOENT, EINVAL, EADDRNOTAVAIL, EILSEQ: it cannot be there; EACCES, EPERM.
    """
    kind = pmu.attribute(probe.pmu, "type")
    if kind is None:
        from purebpf.loader.perf.probe_tracefs import open_traced

        return open_traced(probe)
    returns = (pmu.attribute(probe.pmu, "format/retprobe") or "config:0").partition(":")[2]
    name = Buffer(probe.name + b"\0")
    config = int(probe.returns) << int(returns) | probe.semaphore << _SEMAPHORE_SHIFT
    return PerfEvent.open(
        Event(f"{probe.pmu} {os.fsdecode(probe.name)}+{probe.offset:#x}", int(kind), config),
        pid=ProbedThread(probe.pid).tid if probe.pid > 0 else probe.pid,
        cpu=0 if probe.pid == EVERY_PROCESS else _ANY_CPU,
        config1=name.address,
        config2=probe.offset,
    )


def syscall_function(name: str) -> str:
    """The function that runs a system call in this kernel: `__x64_sys_openat` of `openat`."""
    if has_syscall_wrapper():
        return f"__{_WRAPPERS[os.uname().machine]}_sys_{name}"
    return f"__se_sys_{name}"


def has_syscall_wrapper() -> bool:
    """Return True if system call functions get a struct pt_regs (CONFIG_ARCH_HAS_SYSCALL_WRAPPER).

    Asked as libbpf does: by a kprobe on `__x64_sys_bpf`. A kernel without kprobes says no.
    """
    machine = _WRAPPERS.get(os.uname().machine)
    if machine is None:
        return False
    try:
        open_probe(Probe("kprobe", f"__{machine}_sys_bpf".encode(), pid=os.getpid())).close()
    except (KernelError, NotSupportedError):
        return False
    return True
