"""The wall clock as text, in the chosen layout. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from purebpf.cli import places
from purebpf.cli.destination import ResultOptions, wants_answer
from purebpf.results import Profile
from purebpf.results.formats import json, writer
from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.results.model.width import fold
from purebpf.tools.wall.threads import Thread

__all__ = ["render"]

_THREADS, _WIDTH = 12, 80


def render(
    profile: Profile,
    threads: Sequence[Thread],
    options: ResultOptions,
    format_name: str,
    *,
    notes: Sequence[str] = (),
) -> Iterable[str | bytes]:
    """The pieces of one output, without the title; `notes` are lines above the places."""
    if format_name in places.TELL_IDLE:
        profile = places.mark_idle(profile)
    if format_name == "json":
        return [json.document(profile, threads=[_as_dict(thread) for thread in threads])]
    if wants_answer(options, format_name, details=options.delimited or options.offsets):
        text = places.pieces(
            profile, top=options.top, everything=options.all_stacks, whole_names=options.verbose
        )
        most = options.top or (len(threads) if options.all_stacks else _THREADS)
        rest = len(threads) - len(threads[:most])
        more = [f"{'':42}and {rest} more (all: --all)\n"] if rest and not options.top else []
        above = [f"{fold(note, _WIDTH)}\n\n" for note in notes]
        return chain(above, text, _table(threads[:most]), more, ["\n"])
    style = writer.Style(options.delimited, offsets=options.offsets, by_thread=True)
    pieces = writer.write(profile, format_name, style)
    return [*_table(threads[: options.top]), "\n", *pieces] if format_name == "text" else pieces


def _table(threads: Sequence[Thread]) -> Iterator[str]:
    has_gil = any(thread.gil_ns for thread in threads)
    gil_head = f" {'GIL':>8}" if has_gil else ""
    yield f"{'wall':>9} {'on-CPU':>8} {'off-CPU':>8} {'run-queue':>9}{gil_head}  thread\n"
    for thread in threads:
        comm, pid, tid, *_ = thread.labels
        wall = thread.wall_ns or 1
        on, off, queued = (
            100 * part / wall for part in (thread.on_ns, thread.off_ns, thread.queued_ns)
        )
        gil = f" {100 * thread.gil_ns / wall:7.1f}%" if has_gil else ""
        yield (
            f"{in_unit(thread.wall_ns):>9} {on:7.1f}% {off:7.1f}% {queued:8.1f}%{gil}  "
            f"{printable(comm)} ({pid}/{tid})\n"
        )


def _as_dict(thread: Thread) -> dict[str, object]:
    comm, pid, tid, *_ = thread.labels
    return {
        "comm": comm,
        "pid": pid,
        "tid": tid,
        "wall_ns": thread.wall_ns,
        "on_ns": thread.on_ns,
        "off_ns": thread.off_ns,
        "queued_ns": thread.queued_ns,
        "gil_ns": thread.gil_ns,
    }
