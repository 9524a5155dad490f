"""The losses of a run, from the counters of its BPF programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from purebpf.observe.instruments.process_tree import CAPACITY
from purebpf.observe.instruments.stack_maps import MAX_DEPTH
from purebpf.results import Loss, count_cause
from purebpf.results.build.stored_stacks import causes
from purebpf.results.model.spelling import count_text, printable
from purebpf.tools.mem.request import MemOptions

__all__ = ["NO_MALLOC", "leaving_functions", "losses", "untraced_files", "untraced_functions"]

_NOTES = frozenset({"replaced", "outside_namespace", "returns_missed", "in_flight"})
_SHOWN = 3
_OF_THE_MACHINE = "faults_missed"
"""Of a target it is a note: most are faults of other processes."""


NO_MALLOC = (
    "Allocations are not traced: the target has no malloc (as programs of Go), or none with "
    "symbols. Name a file that has it with --library FILE."
)


def losses(
    stats: Mapping[str, int], options: MemOptions, *, side_band_lost: int, max_depth: int
) -> Loss:
    """Every way to lose something, zero or not.

    Args:
        stats: of `MemoryTracer.stats`, with `user_truncated` of the stacks that were named.
        options: the options of the run, for the advice.
        side_band_lost: records of processes and mappings that were lost.
        max_depth: the most frames of a stack in the kernel.
    """
    sites, room = 2 * options.hash_storage_size, 2 * options.allocation_storage_size
    full = f"(table full: --allocations {room})"
    descriptions = {
        "map_full": (
            stats["sites_full"] + stats["sites_busy"],
            f"events were dropped (table full: --hash-storage-size {sites})",
        ),
        "allocations_full": (
            stats["allocations_full"] + stats["allocations_busy"],
            f"allocations were not followed: freed or not, they do not count as unfreed {full}",
        ),
        "calls_full": (
            stats["calls_full"],
            "allocations were not seen: too many threads were in an allocator at once",
        ),
        "returns_missed": (
            stats["returns_missed"],
            "calls of allocators were over without a return: by an exception or longjmp",
        ),
        "in_flight": (
            stats["in_flight"],
            "calls of allocators were in flight at the end, or left by an exception",
        ),
        "heaps_destroyed": (
            stats["heaps_destroyed"],
            "heaps of mimalloc were destroyed: the allocations in them count as not freed",
        ),
        "texts_copied": (
            stats["texts_copied"],
            "copies of texts by mimalloc (mi_strdup and others) are missing",
        ),
        "late_allocators": (
            stats.get("late_allocators", 0),
            "allocators were not traced: processes executed or loaded them during the run",
        ),
        "places_taken": (
            stats["places_taken"],
            "events lost their stack: too many programs were preempted on one CPU",
        ),
        "sizes_cut": (
            stats["sizes_cut"],
            "stacks claim more bytes than a machine can have: they are shown with less",
        ),
        "faults_missed": (
            stats["faults_missed"],
            "page faults of the machine were not seen: they came inside of a BPF program",
        ),
        "recursion_misses": (
            stats["recursion_misses"],
            "recursion misses: the kernel does not run a program inside itself",
        ),
        "children_missed": (
            stats["children_missed"],
            f"new processes were not followed: more than {CAPACITY} lived at once",
        ),
        "replaced": (
            stats["replaced"],
            "allocations at an address that was not freed before: an execve or a new process",
        ),
        "outside_namespace": (
            stats["outside_namespace"],
            "events are of tasks without an ID in this PID namespace: they are process 0",
        ),
        "sideband_lost": (
            side_band_lost,
            "records of processes and mappings were lost: names may be missing",
        ),
    }
    notes = _NOTES | {_OF_THE_MACHINE} if options.has_target else _NOTES
    own = [
        count_cause(name, lost, text, name in notes) for name, (lost, text) in descriptions.items()
    ]
    own[1:1] = causes(
        stats,
        "events",
        storage_size=options.stack_storage_size,
        max_depth=max_depth,
        room=MAX_DEPTH,
        rarer="Trace less at once",
    )
    return Loss(seen=stats["allocations"] + stats["growths"] + stats["faults"], causes=tuple(own))


def untraced_files(refused: Sequence[str], beyond: int, late: Sequence[str] = ()) -> list[str]:
    """Sentences about allocators that are not traced.

    Args:
        refused: paths of those that could not be probed.
        beyond: files that were too many.
        late: paths of those that processes executed or loaded during the run.
    """
    sentences = []
    if refused:
        names = ", ".join(map(printable, refused[:_SHOWN]))
        more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        sentences.append(f"Allocations of {names}{more} are not traced: the kernel refused probes.")
    if late:
        names = ", ".join(map(printable, late[:_SHOWN]))
        more = f" and {len(late) - _SHOWN} more" if len(late) > _SHOWN else ""
        sentences.append(
            f"Allocations of {names}{more} are not traced: executed or loaded during the run. "
            f"Name it with --library {printable(late[0])}"
        )
    if beyond:
        text = count_text(beyond, "files with allocators are not traced: there are too many.")
        sentences.append(f"{text} Name one with --library FILE.")
    return sentences


def untraced_functions(problems: Mapping[str, str]) -> list[str]:
    """Sentences about functions of allocators that are not traced.

    Args:
        problems: functions with their files, and why it is not known where they end.
    """
    sentences = [
        f"Allocations by {printable(name)} are not traced: where it ends is not known, as {why}."
        for name, why in list(problems.items())[:_SHOWN]
    ]
    if (more := len(problems) - _SHOWN) > 0:
        sentences.append(count_text(more, "more functions of allocators are not traced."))
    return sentences


def leaving_functions(names: Sequence[str]) -> list[str]:
    """Sentences about functions of allocators that may go on in another file.

    Args:
        names: the functions with their files.
    """
    if not names:
        return []
    shown = ", ".join(map(printable, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    where = "the code jumps to another file, or through a pointer"
    return [f"Some allocations by {shown}{more} may not be traced: {where}."]
