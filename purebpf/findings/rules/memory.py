"""Page faults and memory that grows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import JavaHeap, MemoryUse, Process, StackFrame
from purebpf.findings.finding import Finding, Source
from purebpf.findings.rules.cpu import busiest_own
from purebpf.findings.words import share

__all__ = ["direct_growth", "growth", "java_growth", "major_faults", "page_faults"]

_FAULTS, _FAULT_S = 10_000.0, 2e-6
_MAJOR_FAULTS = 100.0
_MAPS = ("mmap", "munmap", "madvise", "mremap", "brk")
_YOUNG_GO_HEAP, _YOUNG_HEAP = 8 << 20, 24 << 20
"""Bytes: a Go heap grows to 4 MiB, beside 4 MiB of the runtime, before it is collected at all;
those of Ruby, Node and PHP grow to some 20 MiB."""
_ALWAYS_GROWTH = 500_000.0
"""Bytes a second that a young heap does not need."""
_LEAST_GROWTH = 100_000.0
"""Bytes a second."""
_SMALL, _SLOW_GROWTH = 12 << 20, 200_000.0
"""Bytes, and bytes a second, of a small program whose caches fill: SQLite's grows to 2 MiB."""
_OPENED, _OPENED_BY_MAPS = 50.0, 0.05
"""Opens a second of one file that is mapped each time; opens by calls that map: some for each."""
_UP = 0.6
"""The part of the steps in which memory that leaks grows."""
_EARLY = 0.8
"""A program that did more than this of its growth in the first half is warming up."""
_JUMP = 0.55
"""The part of its growth that a program which leaks all the time does not make in one step."""
_NOISE = 65536
_READINGS, _FEW_READINGS, _EVENLY = 5, 3, 0.5
_AROUND_S = 2.0
"""Of a measurement, before the first reading and behind the last one."""
_COMPUTES = 0.9
"""The part of the time that a thread ran, or was ready."""
_WHOLE = 3
_LEAST_JAVA_GROWTH, _OF_NEW_PAGES = 300_000.0, 0.5
"""Bytes a second; the part of the growth for which the JVM uses memory that it never used."""
_COLLECTIONS, _FEW_STEPS = 3, 2
"""Collections that a heap outgrows; looks of a busy machine, which must all show more."""
_OLD_COLLECTIONS, _RISES = 2, 0.02
"""Old collections that tell a leak from garbage, and what they leave more, by the heap's size."""
_OPEN = "no old collection yet, which would show how much of that is garbage"
_OUTSIDE = {
    "direct buffers, allocated": re.compile(
        r"Unsafe_(Allocate|Reallocate|Set)Memory|java\.nio\.Direct\w*Buffer\.<init>"
    ),
    "classes (metaspace), defined": re.compile(
        r"[Mm]etaspace|ClassFileParser|[jJ][vV][mM]_define_?class|JVM_DefineClass"
        r"|java\.lang\.ClassLoader\.defineClass"
    ),
}
"""Memory of a JVM that is no part of its heap, by functions that allocate it."""
_MOSTLY_OUTSIDE = 0.4
_ALLOCATES = re.compile(r"new_?(type_|object_)?(array|instance)|MemAllocator|::allocate|[aA]llocat")
_IN_ALLOCATOR = re.compile(
    r"_*(GI_|libc_|int_)*(sys)?(malloc|calloc|realloc|memalign|trim)|_*mem(set|cpy|move)|_*s?brk"
    r"|_Py(Mem|Object)_|Py(Mem|Object)_(Raw)?(Malloc|Calloc|Realloc)|new_arena"
)
"""Functions of an allocator: they say less than the functions that call one, and come last."""
_COLLECTED = re.compile(r"/(ruby|node|nodejs|php)[\d.]*$")
_FILLS_ITS_HEAP = "/java"
"""A JVM uses new pages until its heap is as large as it may be."""


def page_faults(evidence: Evidence) -> Iterator[Finding]:
    """Memory is mapped, touched and given back again and again."""
    groups: dict[tuple[str, str], list[Process]] = defaultdict(list)
    for process in evidence.facts.processes:
        if not process.is_new:
            groups[evidence.family(process.pid)].append(process)
    for group in groups.values():
        group.sort(key=lambda process: -process.minor_faults)
        rate = sum(process.minor_faults for process in group) / evidence.elapsed_s
        if rate < _FAULTS:
            continue
        pids = tuple(process.pid for process in group if process.minor_faults)
        sites = _sites_of(evidence, pids, "faults") or _sites_of(evidence, pids, "grown")
        total = sum(amount for _, amount in sites)
        maps = evidence.count_calls(pids, _MAPS)
        faulting = [
            stay
            for pid in pids
            for stay in evidence.by_process.get(pid, ())
            if stay.kind == "cpu" and any(_is_fault(name) for name in stay.kernel)
        ]
        cost, own = evidence.rate(faulting), busiest_own(faulting)
        where = f", {share(sites[0][1], total)} in {sites[0][0]}" if sites else ""
        where = f", most in {evidence.spell(own)}" if own and not sites else where
        yield Finding(
            *("page-faults", group[0].comm, pids, max(cost, rate * _FAULT_S)),
            f"has {rate:.0f} page faults a second{where}",
            (
                _opened_to_map(evidence, pids, maps),
                f"{maps / evidence.elapsed_s:.0f} mmap and munmap calls a second",
                f"the faults take {cost:.2f} CPUs",
            ),
            ("mem", "--show", "faults", "-p", str(pids[0])),
            own=sites[0][0] if sites else evidence.source(own),
        )


def _opened_to_map(evidence: Evidence, pids: tuple[int, ...], maps: int) -> str:
    """A clause about the file that is opened for most of the mappings: a library, or data."""
    opened: Counter[str] = Counter()
    for one in evidence.facts.paths:
        if one.pid in pids and one.call.startswith("open"):
            opened[one.path] += one.times
    path, times = opened.most_common(1)[0] if opened else ("", 0)
    rate = times / evidence.elapsed_s
    if not path or rate < _OPENED or times < _OPENED_BY_MAPS * maps:
        return ""
    return f"it opens and maps {path} {rate:.0f} times a second"


def major_faults(evidence: Evidence) -> Iterator[Finding]:
    """Pages that a program uses are not in memory: of a mapped file, or in swap."""
    for process in evidence.facts.processes:
        rate = process.major_faults / evidence.elapsed_s
        if rate < _MAJOR_FAULTS or process.is_new:
            continue
        pid = process.pid
        faulting = [
            stay
            for stay in evidence.by_process.get(pid, ())
            if not stay.call and any(_is_fault(name) for name in stay.kernel)
        ]
        functions: Counter[str] = Counter()
        for stay in faulting:
            if stay.own is not None:
                functions[evidence.spell(stay.own)] += round(1e6 * stay.seconds)
        where = f", in {functions.most_common(1)[0][0]}" if functions else ""
        yield Finding(
            *("page-faults", process.comm, (pid,), max(evidence.rate(faulting), 1e-4 * rate)),
            f"reads {rate:.0f} pages a second from the disk by major page faults{where}",
            (
                "the file that it maps is not in memory, or memory is in swap",
                f"{process.read_bytes / evidence.elapsed_s / 1e6:.0f} MB/s",
            ),
            ("offcpu", "-p", str(pid)),
        )


def _is_fault(name: str) -> bool:
    return any(word in name for word in ("fault", "unmap", "clear_page", "zap_", "vm_mmap"))


def growth(evidence: Evidence) -> Iterator[Finding]:
    """Anonymous memory grows all the time; of a JVM see `java_growth`."""
    for process in evidence.facts.processes:
        rate = _steady_growth(process.anon, evidence.elapsed_s)
        if rate < _LEAST_GROWTH or process.is_new or process.exe.endswith(_FILLS_ITS_HEAP):
            continue
        if process.anon[-1] < _young_heap(evidence, process) and rate < _ALWAYS_GROWTH:
            continue
        if process.anon[-1] < _SMALL and rate < _SLOW_GROWTH:
            continue
        if _is_batch(evidence, process):
            continue
        sites = _sites(evidence, process.pid, "faults")
        mapped = _sites(evidence, process.pid, "grown")
        total = sum(amount for _, amount in sites)
        named = ", ".join(
            f"{source} {share(amount, total)}"
            for source, amount in sites[:3]
            if amount > 0.08 * total
        )
        support = [f"new pages are first used in {named}" if named else _at_work(evidence, process)]
        if mapped and (not sites or mapped[0][0].function != sites[0][0].function):
            support.append(f"mapped in {mapped[0][0]}")
        yield Finding(
            *("growth", process.comm, (process.pid,), 0.15 + min(1.0, rate / 5e6)),
            f"grows by {rate / 1e6:.2f} MB a second, always ({process.anon[-1] >> 20} MiB now)",
            tuple(support),
            ("mem", "-p", str(process.pid)),
            own=sites[0][0] if sites else None,
        )


def _at_work(evidence: Evidence, process: Process) -> str:
    """A clause about the function that runs most, of a process without traced page faults."""
    stays = [stay for stay in evidence.by_process.get(process.pid, ()) if stay.kind == "cpu"]
    faulting = [stay for stay in stays if any(_is_fault(name) for name in stay.kernel)]
    own = busiest_own(faulting) or busiest_own(stays)
    return f"its code runs most in {evidence.spell(own)}" if own else ""


def java_growth(evidence: Evidence) -> Iterator[Finding]:
    """The old generation of a JVM grows, and its memory with it: objects outlive collections.

    A heap that has been as large before grows between two old collections, and says nothing. Before
    the first old collection, nobody knows how much is garbage: a cache that drops its oldest
    entries looks like a leak, so that this is no finding, but a line below them.
    """
    for heap in evidence.facts.java_heaps:
        process = evidence.process(heap.pid)
        rate = _growth_by_collections(heap, evidence.elapsed_s)
        left = _left_by_collections(heap)
        anon = process.anon[-1] - process.anon[0] if process.anon else 0
        is_new_memory = anon > _OF_NEW_PAGES * (heap.used[-1] - heap.used[0])
        is_growing = rate >= _LEAST_JAVA_GROWTH and is_new_memory
        if not (is_growing or left) or _is_batch(evidence, process):
            continue
        stays = [stay for stay in evidence.by_process.get(heap.pid, ()) if stay.kind == "cpu"]
        allocating = [stay for stay in stays if any(map(_allocates, stay.user))]
        own = busiest_own(allocating) or busiest_own(stays)
        verb = "allocated" if busiest_own(allocating) else "its own code runs most"
        where = f"; {verb} in {evidence.spell(own)}" if own else ""
        is_open = not left and not heap.before
        yield Finding(
            *("growth", process.comm, (heap.pid,), 0.15 + min(1.0, rate / 5e6)),
            f"its Java heap grows{f' by {rate / 1e6:.1f} MB a second' if rate else ''}: objects "
            f"outlive the {'young ' if is_open else ''}collections{where}",
            (left or _size_of(heap, rate), _OPEN if is_open else ""),
            ("mem", "-p", str(heap.pid)),
            own=evidence.source(own),
            is_busy=is_open,
        )


def _size_of(heap: JavaHeap, rate: float) -> str:
    size = f"old generation: {heap.used[-1] >> 20} of {heap.most >> 20} MiB"
    left = f"; it is full in {(heap.most - heap.used[-1]) / rate:.0f} s" if heap.most else ""
    return f"{size}, after {heap.young} young collections{left}"


def _left_by_collections(heap: JavaHeap) -> str:
    """A clause about old collections of this run that leave more and more; "" if they free enough.

    A collection shows as a fall between two looks.
    """
    falls = [(before, after) for before, after in pairwise(heap.used) if after < before]
    if heap.old < _OLD_COLLECTIONS or len(falls) < _OLD_COLLECTIONS:
        return ""
    first, last = falls[0][1], falls[-1][1]
    if last - first < _RISES * heap.most or sorted(after for _, after in falls) != [
        after for _, after in falls
    ]:
        return ""
    return (
        f"{heap.old} old collections left more and more: {first >> 20} MiB, then {last >> 20} of "
        f"{heap.most >> 20} MiB"
    )


def direct_growth(evidence: Evidence) -> Iterator[Finding]:
    """The memory of a JVM grows outside of its heap: direct buffers or classes that are kept."""
    for process in evidence.facts.processes:
        rate = _steady_growth(process.anon, evidence.elapsed_s)
        if rate < _LEAST_JAVA_GROWTH or not process.exe.endswith(_FILLS_ITS_HEAP):
            continue
        uses = [use for use in evidence.facts.memory if use.pid == process.pid]
        faults = [use for use in uses if use.kind == "faults" and len(use.user) >= _WHOLE]
        for kept, pattern in _OUTSIDE.items():
            outside = [use for use in faults if any(pattern.search(f.name) for f in use.user)]
            part = sum(use.amount for use in outside) / max(1, sum(use.amount for use in faults))
            sites = _weigh_sites(evidence, outside)
            if part < _MOSTLY_OUTSIDE or not sites:
                continue
            yield Finding(
                *("growth", process.comm, (process.pid,), 0.15 + min(1.0, part * rate / 5e6)),
                f"grows by {part * rate / 1e6:.1f} MB a second outside of the Java heap: {kept} in "
                f"{sites[0][0]}",
                (f"{process.anon[-1] >> 20} MiB now", f"{share(part, 1.0)} of its new pages"),
                ("mem", "-p", str(process.pid)),
                own=sites[0][0],
            )


def _growth_by_collections(heap: JavaHeap, elapsed_s: float) -> float:
    """Bytes a second that collections leave more and more of; else 0.0."""
    steps = [after - before for before, after in pairwise(heap.used)]
    grown = heap.used[-1] - heap.used[0]
    rises = sum(step > 0 for step in steps)
    if len(steps) < _FEW_STEPS or rises < min(_COLLECTIONS, len(steps)):
        return 0.0
    if heap.old or heap.young < _COLLECTIONS or min(steps) < 0:
        return 0.0
    if heap.used[len(heap.used) // 2] - heap.used[0] > _EARLY * grown:
        return 0.0
    return grown / max(len(steps), elapsed_s - _AROUND_S)


def _allocates(frame: StackFrame) -> bool:
    return bool(_ALLOCATES.search(frame.name))


def _is_batch(evidence: Evidence, process: Process) -> bool:
    """Return True for a program that only computes, and for nobody who waits: it reads its data.

    One that has ended by now has grown as much as it needed: a compiler.
    """
    times = (one for one in evidence.facts.threads if one.pid == process.pid)
    wanted_s = max((one.cpu_s + one.queued_s for one in times), default=0.0)
    is_computing = process.is_gone or wanted_s > _COMPUTES * evidence.elapsed_s
    return is_computing and not evidence.connections.is_service((process.pid,))


def _young_heap(evidence: Evidence, process: Process) -> int:
    """Return the size that the heap of a garbage-collected program reaches at its start."""
    if evidence.program(process.pid).is_go:
        return _YOUNG_GO_HEAP
    return _YOUNG_HEAP if _COLLECTED.search(process.exe) else 0


def _steady_growth(anon: Sequence[int], elapsed_s: float) -> float:
    """Bytes a second of memory that grows in most steps and never shrinks; else 0.0.

    A busy machine gives few readings, which tell less: those must have grown fast, and evenly.
    """
    if len(anon) < _FEW_READINGS:
        return 0.0
    seconds = max(len(anon) - 1.0, elapsed_s - _AROUND_S)
    if len(anon) < _READINGS:
        steps = [after - before for before, after in pairwise(anon)]
        is_even = min(steps) > _EVENLY * max(steps) > 0
        rate = (anon[-1] - anon[0]) / seconds
        return rate if is_even and rate > _ALWAYS_GROWTH else 0.0
    steps = [after - before for before, after in pairwise(anon)]
    grown = anon[-1] - anon[0]
    if grown <= 0 or min(steps) < -_NOISE or sum(step > 0 for step in steps) < _UP * len(steps):
        return 0.0
    if anon[len(anon) // 2] - anon[0] > _EARLY * grown or max(steps) > _JUMP * grown:
        return 0.0
    return grown / seconds


def _sites(evidence: Evidence, pid: int, kind: str) -> list[tuple[Source, int]]:
    return _sites_of(evidence, (pid,), kind)


def _sites_of(evidence: Evidence, pids: Sequence[int], kind: str) -> list[tuple[Source, int]]:
    """The functions of page faults or growth, own ones where there are some, heaviest first.

    Stacks of one or two frames are of the time before the process could be unwound: they say
    nothing beside whole ones. Stacks that are cut inside of the allocator come last.
    """
    uses = (use for use in evidence.facts.memory if use.pid in pids and use.kind == kind)
    return _weigh_sites(evidence, list(uses))


def _weigh_sites(evidence: Evidence, uses: list[MemoryUse]) -> list[tuple[Source, int]]:
    whole = [use for use in uses if len(use.user) >= _WHOLE]
    weights: Counter[Source] = Counter()
    nameless: Counter[Source] = Counter()
    for use in whole or uses:
        program = evidence.program(use.pid)
        own = next((frame for frame in use.user if program.owns(frame)), None)
        source = evidence.source(own or next((frame for frame in use.user if frame.name), None))
        if source is not None:
            is_cut = own is None and _IN_ALLOCATOR.match(source.function)
            (nameless if is_cut else weights)[source] += use.amount
    return [*weights.most_common(), *nameless.most_common()]
