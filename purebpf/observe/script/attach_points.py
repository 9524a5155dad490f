"""`attach_point`: attaches the program of a block."""

from __future__ import annotations

from typing import Any

from purebpf.errors import NotSupportedError
from purebpf.loader.perf.event_parser import choose_event
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.loader.programs.attachments import Attachments
from purebpf.loader.programs.program import Program
from purebpf.script.point import Point
from purebpf.syscall import proc

__all__ = ["attach_point"]

_PERF = ("profile", "software", "hardware")


def attach_point(
    program: Program, point: Point, pid: int, links: Attachments, *, is_unsafe: bool = False
) -> None:
    """Attach a program, and put the closing of its links into `links`.

    Args:
        program: the program of a unit.
        point: where to attach it.
        pid: the only process for uprobes; 0 for all.
        links: takes the links.
        is_unsafe: allow return probes in programs that unwind stacks, which may end them.

    Raises:
        UnsafeReturnError: the returns of the function cannot be traced safely.
        AttachError, KernelError, NotSupportedError: the kernel refuses.
    """
    try:
        if point.kind == "uretprobe":
            from purebpf.observe.script.attach_returns import attach_returns  # reads code

            attach_returns(program, point, pid, links, is_unsafe=is_unsafe)
        else:
            _attach(program, point, pid, links)
    except ValueError as error:
        raise NotSupportedError(point.name, str(error)) from None


def _attach(program: Program, point: Point, pid: int, links: Attachments) -> None:
    rate: dict[str, Any] = (
        {"frequency": point.frequency} if point.frequency else {"period": point.period}
    )
    if point.kind == "interval":
        timer = links.own(PerfEvent.sampling(event=point.event, cpu=0, **rate))
        links.own(program.attach(timer))
    elif point.kind == "watchpoint":
        _attach_watchpoint(program, point, pid, links)
    elif point.kind in _PERF:
        events = links.own(PerfEvents.sampling(event=point.event, **rate))
        for event in events:
            links.own(program.attach(event))
    elif point.kind == "usdt":
        options: dict[str, Any] = {"pid": pid} if pid else {}
        for offset, semaphore in point.places:
            address = f"{point.target}:{offset:#x}"
            links.own(program.attach(address, semaphore=semaphore, **options))
    elif point.kind == "uprobe":
        options = {"pid": pid} if pid else {}
        links.own(program.attach(point.target, **options))
    elif point.target:
        links.own(program.attach(point.target))
    else:
        links.own(program.attach())


def _attach_watchpoint(program: Program, point: Point, pid: int, links: Attachments) -> None:
    """Attach to a breakpoint of the processor: of the threads of a process, or of every CPU."""
    choice = choose_event(point.event)
    options: dict[str, Any] = {"event": choice.event, "period": point.period, **choice.attr}
    if pid:
        for thread in proc.threads(pid):
            event = links.own(PerfEvent.sampling(pid=thread, inherit=1, **options))
            links.own(program.attach(event))
        return
    for event in links.own(PerfEvents.sampling(**options)):
        links.own(program.attach(event))
