"""Perf records as values: MMAP2, COMM, FORK, EXIT, SAMPLE, LOST...

Layouts are in perf_event_open(2) and enum perf_event_type in include/uapi/linux/perf_event.h, in
this machine's byte order. Times are in ns of the event's clock (0 when the event does not record
the time); `cpu` is -1 and `id` 0 when they are not recorded. Names are decoded like file
names: UTF-8, with surrogates for other bytes.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple


class Mmap(NamedTuple):
    """A new mapping, as reported when `attr.mmap2` is not set. Addresses and offsets in bytes."""

    pid: int
    tid: int
    addr: int
    length: int
    pgoff: int
    filename: str
    is_data: bool
    time: int = 0
    cpu: int = -1
    id: int = 0


class Mmap2(NamedTuple):
    """A new mapping with the file behind it.

    The kernel names the file by device and inode, or, when `attr.build_id` is set and the file has
    one, by `build_id` (up to 20 bytes; `maj`, `min` and `ino` are then 0). `prot` and `flags` are
    mmap(2)'s.
    """

    pid: int
    tid: int
    addr: int
    length: int
    pgoff: int
    filename: str
    maj: int
    min: int
    ino: int
    build_id: bytes
    prot: int
    flags: int
    time: int = 0
    cpu: int = -1
    id: int = 0


class Comm(NamedTuple):
    """A thread's new name; `exec` when execve(2) set it, so all earlier mappings are gone."""

    pid: int
    tid: int
    comm: str
    exec: bool
    time: int = 0
    cpu: int = -1
    id: int = 0


class Fork(NamedTuple):
    """A new thread, or a new process when `pid` differs from `ppid`."""

    pid: int
    ppid: int
    tid: int
    ptid: int
    time: int = 0
    cpu: int = -1
    id: int = 0


class Exit(NamedTuple):
    """The end of a thread."""

    pid: int
    ppid: int
    tid: int
    ptid: int
    time: int = 0
    cpu: int = -1
    id: int = 0


class Lost(NamedTuple):
    """`lost` records of event `lost_id` did not fit into the ring before this one."""

    lost_id: int
    lost: int
    time: int = 0
    cpu: int = -1
    id: int = 0


class LostSamples(NamedTuple):
    """`lost` samples were dropped by the hardware, or, with `by_bpf`, by a BPF filter.

    perf(1) writes such records as well, at the end of a file: for samples without room in a ring.
    """

    lost: int
    time: int = 0
    cpu: int = -1
    id: int = 0
    by_bpf: bool = False


class Throttle(NamedTuple):
    """The kernel stopped (`stopped`) or resumed sampling: too many interrupts in one tick."""

    stopped: bool
    time: int
    event_id: int
    stream_id: int
    cpu: int = -1
    id: int = 0


class Switch(NamedTuple):
    """A context switch: `pid`, `tid` leave (`out`) or enter the CPU.

    `other_pid`, `other_tid` is the next or previous task of a CPU-wide event; 0 otherwise.
    """

    out: bool
    preempted: bool
    other_pid: int
    other_tid: int
    pid: int = 0
    tid: int = 0
    time: int = 0
    cpu: int = -1
    id: int = 0


class Sample(NamedTuple):
    """One sample: a field that the event's `sample_type` does not ask for has its default.

    `callchain` is leaf first and contains the PERF_CONTEXT_* markers; `values` are the u64 of
    `struct read_format`, in its order; `raw` includes the kernel's padding to 8 bytes. Registers
    are in ascending bit order of the event's mask, () for a sample without (kernel threads).
    `branches` is the number of entries in its branch stack, and `aux_size` the bytes of its part of
    a hardware trace: both are skipped.
    """

    misc: int
    ip: int = 0
    pid: int = 0
    tid: int = 0
    time: int = 0
    addr: int = 0
    id: int = 0
    stream_id: int = 0
    cpu: int = -1
    period: int = 0
    values: tuple[int, ...] = ()
    callchain: tuple[int, ...] = ()
    raw: bytes = b""
    regs_user: tuple[int, ...] = ()
    stack_user: bytes = b""
    weight: int = 0
    data_src: int = 0
    transaction: int = 0
    regs_intr: tuple[int, ...] = ()
    phys_addr: int = 0
    cgroup: int = 0
    data_page_size: int = 0
    code_page_size: int = 0
    branches: int = 0
    aux_size: int = 0


class Other(NamedTuple):
    """A record that purebpf has no class for: its body, trailer removed."""

    type: int
    misc: int
    body: bytes
    time: int = 0
    cpu: int = -1
    id: int = 0


Record = Mmap | Mmap2 | Comm | Fork | Exit | Lost | LostSamples | Throttle | Switch | Sample | Other
