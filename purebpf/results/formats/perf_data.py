"""perf.data, for `perf report`, `perf script`, hotspot and samply.

Each stack is a sample of one event, with its weight as period. The format has addresses and no
names: readers look them up in the files, found by the build ids in the mappings, or in the kernel,
by a symbol's address relative to the kernel's own. So a mapping is written only for code that the
stacks have been in. Samples with a time are dated (a wait by its end, a slot by its begin); the
others are at the end of the run. A sample's comm comes from the last COMM record, so that several
may share a process.

tools/perf/Documentation/perf.data-file-format.txt of the Linux source.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterable, Iterator

from purebpf._version import __version__
from purebpf.abi.perf import PERF_EVENT_ATTR, perf_sw_ids, perf_type_id
from purebpf.abi.perf import perf_callchain_context as context
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import FormatError, NotSupportedError
from purebpf.results.build.loaded_code import BPF, LoadedRange, pack_ksymbol
from purebpf.results.model.profile import Profile, Row, Stack
from purebpf.results.model.stack_end import CUT, StackEnd, cut_mapping
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import KERNEL, Feature, RecordedEvent
from purebpf.wire.perf_data_features import (
    BuildId,
    pack_build_ids,
    pack_numbers,
    pack_string,
    pack_strings,
)
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import HOST_KERNEL, MISC_KERNEL, MISC_USER, RecordEncoder
from purebpf.wire.perf_records import Comm, Mmap, Mmap2, Other, Record, Sample

__all__ = ["document"]

_SAMPLE_TYPE = (
    bit.PERF_SAMPLE_IP
    | bit.PERF_SAMPLE_TID
    | bit.PERF_SAMPLE_TIME
    | bit.PERF_SAMPLE_CPU
    | bit.PERF_SAMPLE_PERIOD
    | bit.PERF_SAMPLE_CALLCHAIN
)
_MONOTONIC = 1
_PAGE = 4096
_PLACELESS = ("inlined", CUT)
_IN_CUT = 8  # where in its page: readers look a caller up at the address before
_EXECUTABLE, _PRIVATE = 5, 2  # mmap(2): PROT_READ | PROT_EXEC, MAP_PRIVATE
_ROUND = 10_000  # samples between two marks by which a reader may forget what came before
_KERNEL_CONTEXT, _USER_CONTEXT = context.PERF_CONTEXT_KERNEL, context.PERF_CONTEXT_USER

_LAST = (1 << 64) - 1
_LONGEST_PROGRAM, _LONGEST_SYMBOL = 1 << 20, 512
_ANCHORS = (
    *("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ret_from_fork_asm", "ret_from_fork"),
    *("el0t_64_sync", "invoke_syscall", "schedule", "do_idle", "kthread"),
)
"""Functions of which every kernel has one: their addresses tell where it was loaded."""


def document(profile: Profile) -> bytes:
    """The whole file.

    Raises:
        NotSupportedError: the frames have no addresses, as in folded stacks.
        FormatError: it has numbers or build ids that no machine gives.
    """
    rows = profile.rows()
    _check(rows)
    try:
        return _write(profile, rows)
    except (struct.error, ValueError) as error:
        raise FormatError(profile.title or "profile", "perf.data", str(error)) from None


def _write(profile: Profile, rows: list[Row]) -> bytes:
    file = io.BytesIO()
    writer = PerfDataWriter(file, [RecordedEvent(_event(profile), _attr())])
    encoder = RecordEncoder(_SAMPLE_TYPE)
    build_ids: dict[str, BuildId] = {}
    for number, record in enumerate(_records(profile, rows)):
        if isinstance(record, Mmap2) and record.build_id:
            build_ids[record.filename] = BuildId(record.filename, record.build_id)
        writer.write(encoder.encode(record))
        if number % _ROUND == 0:
            writer.end_round()
    if build_id := str(profile.about.get("kernel_build_id", "")):
        build_ids[KERNEL] = BuildId(KERNEL, bytes.fromhex(build_id), is_kernel=True)
    writer.finish(_features(profile) | {Feature.BUILD_ID: pack_build_ids(build_ids.values())})
    return file.getvalue()


def _check(rows: list[Row]) -> None:
    entries = (entry for row in rows for entry in (*(row.user or ()), *(row.kernel or ())))
    first = next(entries, None)
    if first is not None and not first.address and not any(entry.address for entry in entries):
        raise NotSupportedError(
            "writing perf.data",
            "the format stores addresses, and these stacks have only names",
        )


def _event(profile: Profile) -> str:
    """Return the event's name; `purebpf.observe.saved.perf_data_loader` finds the meaning of a
    weight by it.
    """
    if profile.unit == "ns":
        has_kinds = any(row.marks.kind for row in profile.rows())
        return "wall-time" if has_kinds else "offcpu-time"
    if profile.unit == "samples":
        return str(profile.about.get("event", "samples"))
    return profile.unit


def _attr() -> bytes:
    """Return the attr of an event that programs write, as for perf's own off-CPU samples."""
    packed = PERF_EVENT_ATTR.pack(
        type=perf_type_id.PERF_TYPE_SOFTWARE,
        size=PERF_EVENT_ATTR.size,
        config=perf_sw_ids.PERF_COUNT_SW_BPF_OUTPUT,
        sample_type=_SAMPLE_TYPE,
        sample_period=1,
        sample_id_all=1,
        comm=1,
        mmap=1,
        mmap2=1,
        task=1,
        build_id=1,
        use_clockid=1,
        clockid=_MONOTONIC,
    )
    return bytes(packed)


def _features(profile: Profile) -> dict[Feature, bytes]:
    about = profile.about
    contents = {
        Feature.VERSION: pack_string(f"purebpf {__version__}"),
        Feature.CLOCKID: pack_numbers(_MONOTONIC),
        Feature.CMDLINE: pack_strings([_clean(profile.title)]),
    }
    release, _, machine = str(about.get("kernel", "")).partition(" ")
    for feature, text in (
        (Feature.HOSTNAME, str(about.get("host", ""))),
        (Feature.OSRELEASE, release),
        (Feature.ARCH, machine),
    ):
        if text:
            contents[feature] = pack_string(_clean(text))
    return contents


class _Dated(NamedTuple):
    """A row, or the part of it that fell in a slot, and when."""

    time_ns: int
    row: Row
    weight: int


def _order(dated: _Dated) -> tuple[int, int, int, str]:
    comm, pid, tid, *_ = dated.row.labels
    return dated.time_ns, pid, tid, comm


def _keep_dated(profile: Profile, rows: list[Row]) -> list[_Dated]:
    begin = profile.about.get("started_ns")
    start_ns = begin if isinstance(begin, int) and begin > 0 else 1
    dated = []
    undated = []
    for row in rows:
        if row.marks.ended_ns:
            dated.append(_Dated(row.marks.ended_ns, row, row.weight))
        elif row.slots:
            dated += (_Dated(start_ns + n * profile.slot_ns, row, part) for n, part in row.slots)
        else:
            undated.append(row)
    end = profile.about.get("ended_ns")
    last_ns = max((entry.time_ns for entry in dated), default=start_ns)
    end_ns = max(last_ns, end) if isinstance(end, int) else last_ns
    dated += (_Dated(end_ns, row, row.weight) for row in undated)
    dated.sort(key=_order)
    return dated


def _records(profile: Profile, rows: list[Row]) -> Iterator[Record]:
    yield Comm(0, 0, "swapper", False, 1)  # readers take a file without records for a broken one
    yield from _kernel_mappings(rows)
    mappings = _Mappings(rows)
    comms: dict[tuple[int, int], str] = {}
    for time_ns, row, weight in _keep_dated(profile, rows):
        comm, pid, tid = _clean(row.labels[0]), row.labels[1], row.labels[2] or row.labels[1]
        if comms.get((pid, tid)) != comm:
            comms[pid, tid] = comm
            yield Comm(pid, tid, comm, False, time_ns)
        yield from mappings.new(pid, row.user, time_ns)
        if row.user and row.marks.end.cut:
            yield from mappings.cut(pid, row.marks.end, time_ns)
        yield _sample(row, pid, tid, time_ns, weight)


def _sample(row: Row, pid: int, tid: int, time_ns: int, weight: int) -> Sample:
    kernel: list[int] = [entry.address for entry in row.kernel or ()]
    user: list[int] = [entry.address for entry in row.user or () if entry.kind not in _PLACELESS]
    if user and row.marks.end.cut:
        user.append(cut_mapping(row.marks.end)[1] + _IN_CUT)
    chain: list[int] = []
    if kernel:
        chain += [_KERNEL_CONTEXT, *kernel]
    if user:
        chain += [_USER_CONTEXT, *user]
    return Sample(
        MISC_KERNEL if kernel else MISC_USER if user else 0,
        ip=(kernel or user or [0])[0],
        pid=pid,
        tid=tid,
        time=time_ns,
        cpu=max(row.labels.cpu, 0),
        period=weight,
        callchain=tuple(chain),
    )


def _kernel_mappings(rows: list[Row]) -> Iterator[Mmap | Other]:
    """Yield the ranges that the kernel and each module cover, as far as there are addresses.

    The kernel's names a function and where it began (perf: "ref_reloc_sym").
    """
    entries = {id(entry): entry for row in rows for entry in row.kernel or ()}
    spans: dict[str, tuple[int, int]] = {}
    starts: dict[str, int] = {}
    for entry in entries.values():
        low, high = spans.get(entry.module, (entry.address, entry.address))
        spans[entry.module] = min(low, entry.address), max(high, entry.address)
        if entry.module == "kernel" and isinstance(entry, Frame) and re.match(r"\w+$", entry.name):
            starts[entry.name] = max(entry.address - entry.offset, 0)
    known = [name for name in _ANCHORS if name in starts] or sorted(starts)
    for module, (low, high) in spans.items():
        start, length = _pages(low, high)
        if module == "kernel" and known:
            name = f"{KERNEL}{known[0]}"
            yield Mmap(HOST_KERNEL, 0, start, length, starts[known[0]], name, False)
        elif module and not module.startswith("["):
            yield Mmap(HOST_KERNEL, 0, start, length, 0, f"[{_clean(module)}]", False)
    yield from _programs(entry for entry in entries.values() if entry.module == BPF)


def _programs(entries: Iterable[Frame | Unknown]) -> Iterator[Other]:
    """The BPF programs as KSYMBOL records: their addresses mean nothing at another boot."""
    sizes: dict[tuple[int, str], int] = {}
    for entry in entries:
        if isinstance(entry, Frame) and 0 <= entry.offset < min(entry.address, _LONGEST_PROGRAM):
            key = entry.address - entry.offset, _clean(entry.name)[:_LONGEST_SYMBOL]
            sizes[key] = max(sizes.get(key, 0), entry.offset + 1)
    for (start, name), size in sorted(sizes.items()):
        yield pack_ksymbol(LoadedRange(start, start + size, name, BPF))


def _pages(low: int, high: int) -> tuple[int, int]:
    """The pages from one address to another: the first one's address, and the length of all."""
    start = low // _PAGE * _PAGE
    return start, min((high // _PAGE + 1) * _PAGE, _LAST) - start


class _Mapping(NamedTuple):
    """A file in an address space, `base` where its first byte would be; or memory without one."""

    path: str
    build_id: str
    base: int


class _Mappings:
    """The mappings of each process, written when a stack first needs them.

    A process may execute another program, with other files at the same addresses: a mapping that a
    new one covers is written again when it is needed again.
    """

    def __init__(self, rows: list[Row]) -> None:
        self._told: dict[int, set[_Mapping]] = {}
        self._of_stack: dict[int, list[_Mapping]] = {}
        self._pages: dict[_Mapping, tuple[int, int]] = {}
        entries = {id(entry): entry for row in rows for entry in row.user or ()}
        self._of_entry = {key: _mapping(entry) for key, entry in entries.items()}
        spans: dict[_Mapping, tuple[int, int]] = {}
        for key, entry in entries.items():
            mapping, at = self._of_entry[key], entry.address
            if mapping is not None:
                low, high = spans.get(mapping, (at, at))
                spans[mapping] = min(low, at), max(high, at)
        for mapping, (low, high) in spans.items():
            self._pages[mapping] = _pages(low, high)

    def new(self, pid: int, stack: Stack | None, time_ns: int) -> Iterator[Mmap2]:
        """The mappings a stack needs that were not yet written."""
        told = self._told.setdefault(pid, set())
        for mapping in self._needed(stack):
            if mapping in told:
                continue
            start, length = self._pages[mapping]
            told.difference_update(
                [place for place in told if _overlap(self._pages[place], (start, length))]
            )
            told.add(mapping)
            path, build_id, base = mapping
            offset = start - base if path != "//anon" else 0
            file = (0, 0, 0, bytes.fromhex(build_id))
            yield Mmap2(
                pid, pid, start, length, offset, path, *file, _EXECUTABLE, _PRIVATE, time_ns
            )  # fmt: skip

    def cut(self, pid: int, end: StackEnd, time_ns: int) -> Iterator[Mmap2]:
        """The mapping that says why a stack is cut, if it was not yet written."""
        path, start = cut_mapping(end)
        mapping = _Mapping(path, "", start)
        if mapping not in self._told[pid]:
            self._told[pid].add(mapping)
            self._pages[mapping] = start, _PAGE
            file = (0, 0, 0, b"")
            yield Mmap2(pid, pid, start, _PAGE, 0, path, *file, _EXECUTABLE, _PRIVATE, time_ns)

    def _needed(self, stack: Stack | None) -> list[_Mapping]:
        """The mappings in a stack."""
        if not stack:
            return []
        needed = self._of_stack.get(id(stack))
        if needed is None:
            different = dict.fromkeys(map(self._of_entry.__getitem__, map(id, stack)))
            needed = self._of_stack[id(stack)] = [
                mapping for mapping in different if mapping is not None
            ]
        return needed


def _mapping(entry: Frame | Unknown) -> _Mapping | None:
    if entry.module == "[jit]":  # perf looks into /tmp/perf-PID.map for memory without a file
        return _Mapping("//anon", "", entry.address // _PAGE)
    base = entry.address - entry.file_offset
    if entry.file_offset < 0 or not entry.module or base % _PAGE:
        return None
    return _Mapping(_clean(entry.module), entry.build_id, base)


def _clean(text: str) -> str:
    """Return the text with `?` for anything except characters and bytes of a file name."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]
