"""perf.data, of purebpf or of perf: its stacks, with names from this machine's files and kernel."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_sw_ids, perf_type_id
from purebpf.errors import FormatError, KernelError, NotSupportedError, PurebpfError
from purebpf.files.held_files import HeldFiles
from purebpf.files.input_file import open_seekable
from purebpf.loader.host.debug_files import Fetch
from purebpf.observe.saved.recorded_copies import RecordedCopies
from purebpf.observe.saved.recorded_kernel import Origin, RecordedKernel, origin_of
from purebpf.observe.symbols.interruptible import interruptible
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Labels, Loss, Profile, count_cause
from purebpf.results.build import stack_ends
from purebpf.results.build.chain_ends import chain_method
from purebpf.results.build.perf_data_aggregate import DEEP, SLOT_NS, Counted, Owner, Unwind, count
from purebpf.results.model.profile import NO_MARKS
from purebpf.results.model.spelling import count_text
from purebpf.results.model.stack_end import end_of, root_frame
from purebpf.results.shape.hints import hints
from purebpf.results.shape.naming_loss import with_naming
from purebpf.symbols.budget import Budget
from purebpf.symbols.frame import Frame, Unknown, without_stray_tail
from purebpf.symbols.runtimes import Runtime
from purebpf.tuples import NamedTuple
from purebpf.unwind.reason import Reason
from purebpf.wire.callchain import Stacks
from purebpf.wire.perf_data import Feature, RecordedEvent
from purebpf.wire.perf_data_features import string, unpack_build_ids, unpack_strings
from purebpf.wire.perf_data_reader import PerfData, ReadAt

__all__ = [
    "FileNames",
    "LoadOptions",
    "Read",
    "build_ids_of",
    "choose_event",
    "lost_of",
    "name_counted",
    "of_bytes",
    "opened",
    "read",
]

_UNITS = {"offcpu-time": "ns", "wall-time": "ns", "calls": "calls", "bytes": "bytes"}
"""What the periods of events count that programs wrote (purebpf.results.formats.perf_data)."""


class NoSuchEventError(PurebpfError):
    """The file has no samples of such an event."""

    exit_status = 2


class LoadOptions(NamedTuple):
    """The parts to read.

    `event` None: the first that has samples. `weight` "samples" counts them, "period" adds up
    their periods; None does the latter for events that programs wrote, with a weight as period.
    `timed`: the time of each sample, in slots. `fetch` gets debug files that are not here. `budget`
    is charged for the names. `seconds` of CPU time may go by until the last record is read.
    """

    event: str | None = None
    weight: str | None = None
    timed: bool = False
    fetch: Fetch | None = None
    budget: Budget | None = None
    seconds: float | None = None


_ANYTHING = LoadOptions()


class Read(NamedTuple):
    """A profile, and the events of the file that it is not of, with how many samples they have.

    `records`: the maps that a user's own program wrote records to, with how many they have.
    """

    profile: Profile
    others: tuple[tuple[str, int], ...]
    records: tuple[tuple[str, int], ...] = ()


def read(path: str, wanted: LoadOptions = _ANYTHING) -> Read:
    """Read a file, "-": of standard input, and name its stacks.

    A pipe is copied to an unnamed temporary file first: the format needs a file.

    Raises:
        KernelError: it cannot be opened, or the copy not be written.
        FormatError, NotSupportedError: it is not a perf.data file that purebpf can read.
        NoSuchEventError: there is no event of that name in it.
    """
    with opened(path, wanted.seconds) as file:
        return _read(file, wanted)


@contextmanager
def opened(path: str, seconds: float | None = None) -> Iterator[PerfData]:
    """Open a file, "-": standard input, for as long as the context lasts.

    `seconds` of CPU time are the limit for reading it; None: no limit. The errors are the same as
    of `read`.
    """
    name = "standard input" if path == "-" else path
    try:
        fd = _copy_input() if path == "-" else _open(path)
    except OSError as error:
        if isinstance(error, KernelError):
            raise
        raise KernelError("open(2)", error.errno or 0, f"input {name}") from None
    try:
        size = os.fstat(fd).st_size
        read_at = _within(lambda at, length: os.pread(fd, length, at), seconds, name)
        yield PerfData(read_at, size, name)
    except OSError as error:
        if isinstance(error, KernelError):
            raise
        raise KernelError("read(2)", error.errno or 0, f"input {name}") from None
    finally:
        os.close(fd)


def _open(path: str) -> int:
    """Return the file; refuse a pipe or another special file that its user left there, instead
    of waiting for it.
    """
    try:
        return open_seekable(path)
    except OSError as error:
        if error.errno == errno.EISDIR:
            return _open_directory(path)
        if error.errno != errno.ESPIPE:
            raise
        fix = f"If it is a pipe with a perf.data: purebpf report -i - < {shlex.quote(path)}"
        raise KernelError("lseek(2)", errno.ESPIPE, f"input {path}", fix=fix) from None


def _open_directory(path: str) -> int:
    """Return the file `data` of a directory that perf wrote; refuse one with a file a thread."""
    names = os.listdir(path)
    if "data" not in names:
        why = "it is a directory, and none that perf record wrote"
        raise KernelError("open(2)", errno.EISDIR, f"input {path}", why=why)
    parts = [name for name in names if name.startswith("data.")]
    if any(os.stat(os.path.join(path, part)).st_size for part in parts):
        way = f"perf script -i {shlex.quote(path)} | purebpf convert -"
        raise NotSupportedError(f"input {path}", f"it has a file for each thread. Try: {way}")
    return open_seekable(os.path.join(path, "data"))


def _copy_input() -> int:
    """Return a descriptor for standard input: its own file, or a copy of a pipe's content."""
    import shutil
    import tempfile

    with open(0, "rb", closefd=False) as stream:
        if stat.S_ISREG(os.fstat(0).st_mode):
            return os.dup(0)
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(stream, copy)
            copy.flush()
            return os.dup(copy.fileno())


def of_bytes(data: bytes, source: str, wanted: LoadOptions = _ANYTHING) -> Read:
    """Read a file that is in memory; `source` is its name in errors."""
    read_at = _within(lambda at, length: data[at : at + length], wanted.seconds, source)
    return _read(PerfData(read_at, len(data), source), wanted)


def _within(read_at: ReadAt, seconds: float | None, source: str) -> ReadAt:
    """The same until this thread has used so many seconds of CPU time; then it is a FormatError."""
    if seconds is None:
        return read_at
    until = time.thread_time() + seconds

    def read_in_time(at: int, length: int) -> bytes:
        if time.thread_time() > until:
            problem = f"reading it takes longer than {seconds:.0f} seconds"
            raise FormatError(source, f"byte {at}", problem)
        return read_at(at, length)

    return read_in_time


def _read(file: PerfData, wanted: LoadOptions) -> Read:
    build_ids = build_ids_of(file)
    periods = [_is_weight(event, wanted) for event in file.events]
    methods = _chain_methods(file)
    origin = origin_of(file, build_ids)
    with RecordedCopies(file, origin) as copies:
        methods |= copies.methods
        counted = count(file, build_ids, periods=periods, slots=wanted.timed, unwind=methods)
    number = choose_event(file, counted, wanted.event)
    if number in copies.methods:  # no limit of the kernel cut these
        counted.deep[number].clear()
    names = FileNames(counted, origin, wanted)
    read_file = name_counted(file, counted, number, names, periods=periods[number])
    if number in copies.methods:
        _add_ends(read_file.profile, copies, number)
    elif way := _way_of_walking(counted, number):
        read_file.profile.about["call_graph"] = way
    return read_file


def _chain_methods(file: PerfData) -> dict[int, Unwind]:
    """Return how the stacks of each event with call chains are read."""
    packed = file.feature(Feature.VERSION)
    is_ours = packed is not None and string(packed).startswith("purebpf ")
    methods = {}
    for number, event in enumerate(file.events):
        method = chain_method(event.sample_type, is_ours=is_ours and _is_of_programs(event))
        if method is not None:
            methods[number] = method
    return methods


def _way_of_walking(counted: Counted, number: int) -> str:
    """Return how the stacks of an event were walked; "" where the file does not say how they
    ended.
    """
    reasons = {stacks.reason for _, stacks in counted.found[number]}
    if not any(reasons):
        return ""
    return "fp" if reasons <= {0, Reason.FRAME_POINTERS} else "recorded"


def _add_ends(profile: Profile, copies: RecordedCopies, number: int) -> None:
    """Say how the stacks ended that were unwound."""
    ends = copies.ends[number]
    profile.about["call_graph"] = "copy"
    if copies.missing:
        profile.about["files_not_found"] = copies.missing
    causes = (*profile.loss.causes, stack_ends.cause(ends))
    profile.loss = profile.loss._replace(causes=causes)


def _is_weight(event: RecordedEvent, wanted: LoadOptions) -> bool:
    if wanted.weight is not None:
        return wanted.weight == "period"
    return _is_of_programs(event)


def _is_of_programs(event: RecordedEvent) -> bool:
    attr = PERF_EVENT_ATTR.unpack(event.attr)
    kind = perf_type_id.PERF_TYPE_SOFTWARE, perf_sw_ids.PERF_COUNT_SW_BPF_OUTPUT
    return (attr["type"], attr["config"]) == kind and not event.has_program_records


def build_ids_of(file: PerfData) -> dict[str, bytes]:
    """The build ids of files that the recording names, by path."""
    packed = file.feature(Feature.BUILD_ID)
    if packed is None:
        return {}
    return {entry.filename: entry.build_id for entry in unpack_build_ids(packed)}


def name_counted(
    file: PerfData, counted: Counted, number: int, names: FileNames, *, periods: bool
) -> Read:
    """Name the counts of one event; `periods`: the unit of its weights."""
    event = file.events[number]
    rest = [
        (recorded.has_program_records, recorded.name, counted.samples[n])
        for n, recorded in enumerate(file.events)
        if n != number and counted.samples[n]
    ]
    others = tuple((name, samples) for is_own, name, samples in rest if not is_own)
    records = tuple((name, samples) for is_own, name, samples in rest if is_own)
    profile = Profile(
        f"{counted.samples[number]} samples of {event.name} in {file.source}",
        unit=_unit(event, periods=periods),
        about={"event": event.name, **_about(file), "rejected": counted.rejected},
        loss=lost_of(counted, number),
    )
    if others:
        profile.about["other_events"] = [
            f"{name}: {count_text(samples, 'samples')}" for name, samples in others
        ]
    slots = counted.slots[number]
    if slots:
        profile.slot_ns = SLOT_NS
        profile.about["started_ns"] = counted.first_ns
        profile.about["elapsed_s"] = round((counted.last_ns - counted.first_ns) / 1e9, 3)
    truncated = 0
    limit = _depth_limit(event, counted.deep[number])
    with interruptible(names.budget), names.batch():
        for (owner, stacks), weight in counted.found[number].items():
            user = names.user(owner, stacks.user)
            root = user[-1] if user else None
            end = end_of(stacks.reason, stacks.guessed, root)
            is_full = len(stacks.user) + len(stacks.kernel) >= limit
            is_chain = stacks.reason in (0, Reason.FRAME_POINTERS)
            if is_full and is_chain and len(user) == len(stacks.user):
                truncated += counted.deep[number][owner, stacks]
                end = end_of(Reason.TOO_DEEP, 0, root) if end.cut else end
            user += root_frame(end)
            kernel_side = names.kernel(stacks.kernel)
            when = tuple(sorted(slots.get((owner, stacks), {}).items()))
            labels = Labels(owner.comm, owner.pid, cgroup=owner.cgroup)
            marks = NO_MARKS._replace(end=end)
            profile.add(user, kernel_side, weight, labels, when, marks=marks)
    profile.loss = _with_truncated(profile.loss, truncated, limit)
    profile.loss = with_naming(profile.loss, names.budget)
    profile.hints = hints(profile, names.runtime)
    if names.hint and any(row.kernel for row in profile.rows()):
        profile.hints = [names.hint, *profile.hints]
    return Read(profile, others, records)


def _depth_limit(event: RecordedEvent, deep: Mapping[tuple[Owner, Stacks], int]) -> int:
    """Return the number of frames that the kernel cut call chains to."""
    asked = int(PERF_EVENT_ATTR.unpack(event.attr).get("sample_max_stack", 0))
    longest = (len(stacks.user) + len(stacks.kernel) for _, stacks in deep)
    return asked or max(longest, default=DEEP)  # 0: kernel.perf_event_max_stack of that machine


def _with_truncated(loss: Loss, truncated: int, limit: int) -> Loss:
    description = (
        f"stacks have as many frames as the kernel recorded ({limit}) and lack their "
        "roots. Raise the limit: sysctl kernel.perf_event_max_stack"
    )
    return loss._replace(causes=(*loss.causes, count_cause("truncated", truncated, description)))


def _unit(event: RecordedEvent, *, periods: bool) -> str:
    if not periods:
        return "samples"
    return _UNITS.get(event.name, "samples") if _is_of_programs(event) else "events"


def choose_event(file: PerfData, counted: Counted, event: str | None) -> int:
    """Return the number of an event by its name; None: the first event with samples.

    Raises:
        NoSuchEventError: there is no event of that name.
    """
    names = [event.name for event in file.events]
    if event is None:
        return next((n for n in range(len(names)) if counted.samples[n]), 0)
    if event not in names:
        raise NoSuchEventError(
            f"{file.source} does not have event {event!r}; it has {', '.join(names)}"
        )
    return names.index(event)


def _about(file: PerfData) -> dict[str, object]:
    about: dict[str, object] = {}
    for name, feature in (
        ("hostname", Feature.HOSTNAME),
        ("os_release", Feature.OSRELEASE),
        ("arch", Feature.ARCH),
        ("recorded_by", Feature.VERSION),
    ):
        packed = file.feature(feature)
        if packed is not None:
            about[name] = string(packed)
    packed = file.feature(Feature.CMDLINE)
    if packed is not None:
        about["command_line"] = list(unpack_strings(packed))
    return about


def lost_of(counted: Counted, number: int) -> Loss:
    """Return the samples of an event, and the samples that its recording lost."""
    lost = counted.lost
    description = "samples were lost while the file was recorded: the ring buffers were full"
    causes = [count_cause("ring_lost", lost, description)]
    if counted.unfinished:
        description = (
            "samples lack their user stack: the record that was to follow is not in the file"
        )
        causes.append(count_cause("chains_missing", counted.unfinished, description))
    return Loss(None, counted.samples[number], 0, tuple(causes))


class FileNames:
    """Names of the addresses of a file.

    Args:
        counted: the records of the file.
        origin: the machine that it is of; None: this one, which records it at this moment.
        wanted: how names are looked up.
    """

    def __init__(self, counted: Counted, origin: Origin | None, wanted: LoadOptions) -> None:
        self._origin = origin
        self._space_of = counted.space_of
        self._symbolizer = Symbolizer(
            counted.spaces,
            read_processes=False,
            fetch=wanted.fetch,
            budget=wanted.budget,
        )
        self._symbolizer.recorded = origin.recorded() if origin else None
        self._kernel = (
            self._symbolizer.kernel_stack
            if origin is None
            else (RecordedKernel(self._symbolizer, origin, counted.kernel, counted.loaded).stack)
        )
        self._known: dict[tuple[int, ...], tuple[Frame | Unknown, ...]] = {}

    @property
    def hint(self) -> str:
        """A sentence about names that this machine cannot give, or ""."""
        return self._origin.hint if self._origin else ""

    @property
    def budget(self) -> Budget:
        """The budget of the names."""
        return self._symbolizer.budget

    def batch(self) -> HeldFiles:
        """Return a `with` block that makes naming many stacks cheaper."""
        return self._symbolizer.batch()

    def user(self, owner: Owner, call_chain: tuple[int, ...]) -> tuple[Frame | Unknown, ...]:
        """The user stack of a process."""
        pid = self._space_of(owner)
        return without_stray_tail(self._symbolizer.user_stack(pid, call_chain, owner.comm))

    def runtime(self, pid: int) -> Runtime | None:
        """The language runtime of a process."""
        return self._symbolizer.runtime(pid)

    def kernel(self, call_chain: tuple[int, ...]) -> tuple[Frame | Unknown, ...]:
        """A kernel stack."""
        frames = self._known.get(call_chain)
        if frames is None:
            frames = self._known[call_chain] = tuple(self._kernel(call_chain))
        return frames
