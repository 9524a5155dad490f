"""The target of a recording and its file, for a command line or a program."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions
from purebpf.tuples import NamedTuple

__all__ = [
    "COPY_BYTES",
    "COPY_PAGES",
    "DEFAULT_EVENT",
    "FREQUENCY",
    "LARGEST_COPY",
    "RING_PAGES",
    "EventOption",
    "RecordOptions",
    "title",
]

DEFAULT_EVENT = "cycles"
FREQUENCY = 999
RING_PAGES = 512
"""2 MiB for each CPU: what one CPU writes in a third of a second at 100,000 samples a second."""
COPY_PAGES = 4096
"""The same with copies of 16 KiB, at 3,000 samples a second."""
COPY_BYTES = 16384
LARGEST_COPY = 65528
"""Bytes: what a record can hold (perf_event_open(2), sample_stack_user)."""


class EventOption(NamedTuple):
    """An event as typed, and the filters after it."""

    name: str
    filters: tuple[str, ...] = ()


class RecordOptions(TargetOptions, RunOptions):
    """A frozen request. Empty tuples, None and False mean: not asked for.

    Without `events`, CPU cycles. Without a target (`all_cpus`, `pids`, `tids`, `uid`, `cpus`,
    `cgroup`) the `command` is it, and without that every CPU. With `copy_bytes`, a sample has the
    user registers and so many bytes of the user stack, a multiple of 8 up to `LARGEST_COPY`,
    instead of a user call chain. `ring_pages` 0: as many as these samples need. `program`: FILE or
    FILE:NAME of a BPF program that sees each sample.
    """

    events: tuple[EventOption, ...] = ()
    frequency: int | None = None
    period: int | None = None
    callchains: bool = False
    copy_bytes: int = 0
    all_cpus: bool = False
    addresses: bool = False
    timestamps: bool = False
    weights: bool = False
    sample_cpu: bool = False
    phys_data: bool = False
    data_page_size: bool = False
    code_page_size: bool = False
    all_cgroups: bool = False
    transactions: bool = False
    identifiers: bool = False
    explain: bool = False
    ring_pages: int = 0
    output: str = "perf.data"
    serve: tuple[str, int] | None = None
    program: str | None = None
    strict: bool = False
    verbose: bool = False

    @property
    def pages(self) -> int:
        """Data pages of each ring, a power of two."""
        return self.ring_pages or (COPY_PAGES if self.copy_bytes else RING_PAGES)

    @property
    def needs_data_mappings(self) -> bool:
        """True if readers also need mappings that are not executable.

        perf(1) finds .eh_frame_hdr by them, which is not in the segment of the code.
        """
        return self.addresses or bool(self.copy_bytes)

    @property
    def follows_command(self) -> bool:
        """True if the command itself is recorded, not only as long as it runs."""
        return bool(self.command) and not self.has_target

    @property
    def has_target(self) -> bool:
        """True if the user chose a target."""
        return bool(
            self.all_cpus
            or self.pids
            or self.comm is not None
            or self.tids
            or self.uid is not None
            or self.cpus
            or self.cgroup is not None
        )


def title(options: RecordOptions) -> str:
    """Return the sentence that describes the recording."""
    if options.pids:
        whom = f"process {', '.join(map(str, options.pids))}"
    elif options.comm is not None:
        whom = f"the processes called {options.comm!r}"
    elif options.tids:
        whom = f"thread {', '.join(map(str, options.tids))}"
    elif options.uid is not None:
        whom = f"the processes of user {options.uid}"
    elif options.cgroup is not None:
        whom = f"cgroup {options.cgroup}"
    elif options.follows_command:
        whom = " ".join(options.command)
    else:
        whom = "every process"
    where = f" on CPU {','.join(map(str, options.cpus))}" if options.cpus else ""
    return f"Recording {whom}{where}"
