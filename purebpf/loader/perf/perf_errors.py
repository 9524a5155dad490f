"""The reason why perf_event_open(2) failed, in words: only facts of this host, no guesses."""

from __future__ import annotations

import errno
from collections.abc import Callable

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_event_sample_format, perf_sw_ids, perf_type_id
from purebpf.errors import KernelError
from purebpf.loader.host import cpus, fd_limits
from purebpf.syscall import perf_event, pmu, proc
from purebpf.tuples import NamedTuple

__all__ = ["OpenRequest", "explain_open_error", "mapping_explained"]


class OpenRequest(NamedTuple):
    """A call of perf_event_open(2): the event's name, its attr, and where it counts.

    With a `cgroup` (its path), `pid` is a descriptor of that directory.
    """

    name: str
    attr: bytes
    pid: int
    cpu: int
    cgroup: str = ""

    def __str__(self) -> str:
        who = "every process" if self.pid < 0 else f"process {self.pid}" if self.pid else "self"
        where = f"CPU {self.cpu}" if self.cpu >= 0 else "every CPU"
        return f"event {self.name} of {self.cgroup or who} on {where}"


def explain_open_error(error: KernelError, request: OpenRequest) -> KernelError:
    """The same failure with its reason on this host and a fix, if known."""
    number = error.errno or 0
    why = fix = ""
    if number in fd_limits.NONE_LEFT:
        why, fix = fd_limits.explanation(number)
    elif number in _REASONS:
        why, fix = _REASONS[number](request)
    return KernelError(error.call, number, str(request), why=why, fix=fix)


def mapping_explained(error: KernelError, pages: int) -> KernelError:
    """Why the ring of an event could not be mapped."""
    why = fix = ""
    if error.errno == errno.EPERM:
        limit = proc.sysctl("kernel.perf_event_mlock_kb")
        why = f"kernel.perf_event_mlock_kb lets a user lock {limit} KiB on each CPU"
        fix = "use fewer pages, or give the process CAP_IPC_LOCK"
    description = f"a ring of {pages} pages"
    return KernelError(error.call, error.errno or 0, description, why=why, fix=fix)


def _explain_permission(request: OpenRequest) -> tuple[str, str]:
    from purebpf.loader.host import privilege

    host = privilege.read_host()
    kind = str(PERF_EVENT_ATTR.unpack(request.attr)["type"])
    if kind == pmu.attribute("uprobe", "type") and privilege.uprobe_needs_admin(host):
        why = (
            "the uprobe PMU requires CAP_SYS_ADMIN since Linux 6.16 (commit ba677dbe77af), and "
            f"this process lacks it (CapEff {host.capabilities:#x})"
        )
        fix = f"run it as root: sudo {host.command}"
        return why, f'{fix}, or use SEC("uprobe.multi"), for which CAP_PERFMON is enough'
    if privilege.perf_needs_admin(host):
        why = (
            f"kernel.perf_event_paranoid is {host.perf_event_paranoid}; above 2, the kernels of "
            "Debian and Ubuntu require CAP_SYS_ADMIN"
        )
        return why, "allow it: sudo sysctl kernel.perf_event_paranoid=2"
    why, fix = privilege.advice(host, "CAP_PERFMON")
    is_probe = kind in (pmu.attribute("uprobe", "type"), pmu.attribute("kprobe", "type"))
    if fix and request.pid >= 0 and not request.cgroup and not is_probe:
        own = "profile your own process with exclude_kernel=1 (kernel.perf_event_paranoid 2)"
        fix = f"{own}, or {fix}"
    return why, fix


def _no_pmu(request: OpenRequest) -> tuple[str, str]:
    kind = int(PERF_EVENT_ATTR.unpack(request.attr)["type"])
    if offline := _offline(request):
        return offline, ""
    if kind == perf_type_id.PERF_TYPE_TRACEPOINT:
        return "this kernel does not have a tracepoint of this ID", ""
    units = pmu.names()
    why = f"this machine has no PMU for this event; it has {', '.join(units) or 'none'}"
    if kind in (perf_type_id.PERF_TYPE_HARDWARE, perf_type_id.PERF_TYPE_HW_CACHE):
        return why, "use a software event such as cpu-clock"
    return why, ""


def _cannot(_request: OpenRequest) -> tuple[str, str]:
    why = (
        "the PMU does not support a requested feature: sampling interrupts, precise_ip or branch "
        "stacks (perf_event_open(2), EOPNOTSUPP)"
    )
    return why, "count it, or sample a software event such as cpu-clock"


def _offline(request: OpenRequest) -> str:
    if request.cpu < 0 or request.cpu in cpus.online():
        return ""
    return f"CPU {request.cpu} is offline (online: {proc.cpu_list('online')})"


def _no_process(request: OpenRequest) -> tuple[str, str]:
    return f"no process has PID {request.pid}", ""


def _no_cgroup(request: OpenRequest) -> tuple[str, str]:
    if request.cgroup:
        return f"{request.cgroup} is not a directory of a cgroup file system", ""
    return "", ""


def _invalid(request: OpenRequest) -> tuple[str, str]:
    attr = PERF_EVENT_ATTR.unpack(request.attr)
    if offline := _offline(request):
        return offline, ""
    if request.pid == -1 and request.cpu == -1:
        return (
            "every process on every CPU at once is not offered",
            "one event cannot cover all processes on all CPUs",
        )
    if request.cgroup and request.cpu < 0:
        return "a cgroup is watched one CPU at a time", "a cgroup event covers one CPU"
    frequency, limit = int(attr["sample_freq"]), proc.sysctl("kernel.perf_event_max_sample_rate")
    if attr["freq"] and limit is not None and frequency > int(limit):
        why = f"{frequency} Hz is above kernel.perf_event_max_sample_rate, which is {limit}"
        return why, f"sample at {limit} Hz or less, or raise it with sysctl"
    if unknown := _unknown_fields(int(attr["sample_type"])):
        return f"this kernel's samples do not have {' and no '.join(unknown)}", "do without"
    return "the kernel refuses this combination of attr fields", ""


# Commit 6546b19f95ac, "perf/core: Add PERF_SAMPLE_CGROUP feature"; commit 8d97e71811aa, "perf/core:
# Add PERF_SAMPLE_DATA_PAGE_SIZE"; commit 995f088efebe, "perf/core: Add support for
# PERF_SAMPLE_CODE_PAGE_SIZE"; commit 2a6c6b7d7ad3, "perf/core: Add PERF_SAMPLE_WEIGHT_STRUCT".
_LATE_FIELDS: dict[int, str] = {
    perf_event_sample_format.PERF_SAMPLE_CGROUP: "cgroup (Linux 5.7)",
    perf_event_sample_format.PERF_SAMPLE_DATA_PAGE_SIZE: "page size of the data (Linux 5.11)",
    perf_event_sample_format.PERF_SAMPLE_CODE_PAGE_SIZE: "page size of the code (Linux 5.11)",
    perf_event_sample_format.PERF_SAMPLE_WEIGHT_STRUCT: "weight in parts (Linux 5.12)",
}


def _unknown_fields(sample_type: int) -> list[str]:
    """Return the requested fields that a dummy event of this process cannot have either."""
    names = []
    for number in range(perf_event_sample_format.PERF_SAMPLE_CGROUP.bit_length() - 1, 64):
        bit = sample_type & 1 << number
        if bit and not _is_known(bit):
            names.append(_LATE_FIELDS.get(bit, f"the field of bit {number}"))
    return names


def _is_known(bit: int) -> bool:
    attr = PERF_EVENT_ATTR.pack(
        type=perf_type_id.PERF_TYPE_SOFTWARE,
        size=PERF_EVENT_ATTR.size,
        config=perf_sw_ids.PERF_COUNT_SW_DUMMY,
        sample_type=bit,
        disabled=1,
        exclude_kernel=1,
    )
    try:
        perf_event.perf_event_open(attr, 0, -1).close()
    except KernelError as error:
        return error.errno != errno.EINVAL
    return True


_REASONS: dict[int, Callable[[OpenRequest], tuple[str, str]]] = {
    errno.EACCES: _explain_permission,
    errno.EPERM: _explain_permission,
    errno.ESRCH: _no_process,
    errno.EINVAL: _invalid,
    errno.EBADF: _no_cgroup,
    errno.ENOENT: _no_pmu,
    errno.ENODEV: _no_pmu,
    errno.EOPNOTSUPP: _cannot,
}
