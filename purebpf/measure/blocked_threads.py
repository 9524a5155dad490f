"""Threads that are in a system call at the end, and the open files of processes then."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from purebpf.errors import KernelError
from purebpf.findings.facts import OWNER_WORD, Blocked
from purebpf.measure.proc_files import entries, link, read_text
from purebpf.measure.thread_numbers import own_numbers
from purebpf.observe.instruments.wait_reasons import call_name
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory, reading_others

__all__ = ["blocked_threads", "descriptors"]

_MOST_DESCRIPTORS = 4096
_POLLS = ("poll", "ppoll")
_FUTEXES = ("futex", "futex_wait")
_FIRST_NEITHER = (*_FUTEXES, *_POLLS, "nanosleep", "clock_nanosleep", "select", "pselect6")


def blocked_threads(pids: Iterable[int]) -> Iterator[Blocked]:
    """The threads of processes that are in a system call: /proc/PID/task/TID/syscall, proc(5)."""
    with reading_others():
        for pid in pids:
            yield from _of_process(pid)


def _of_process(pid: int) -> Iterator[Blocked]:
    threads = list(_as_read(pid))
    if not any(one.owner for one in threads):
        yield from threads
        return
    numbers = own_numbers(pid)
    for one in threads:
        if numbers and one.words:
            words = (*one.words[:OWNER_WORD], numbers.get(one.owner, 0))
            yield one._replace(words=words)
        else:
            yield one


def _as_read(pid: int) -> Iterator[Blocked]:
    try:
        memory = open_process_memory(pid)
    except KernelError:
        memory = None
    try:
        for tid in entries(f"/proc/{pid}/task"):
            fields = read_text(f"/proc/{pid}/task/{tid}/syscall").split()
            if len(fields) < 4 or not fields[0].isdigit():  # noqa: PLR2004 - "running", "-1 ..."
                continue
            arguments = tuple(int(field, 16) for field in fields[1:4])
            blocked = Blocked(pid, int(tid), call_name(int(fields[0])), arguments)
            yield _with_target(blocked, memory)
    finally:
        if memory is not None:
            memory.close()


def _with_target(blocked: Blocked, memory: ProcessMemory | None) -> Blocked:
    call, first = blocked.call, blocked.arguments[0]
    if call in _FUTEXES and memory is not None:
        raw = memory.read(first, 12)
        return blocked._replace(words=struct.unpack("<3I", raw)) if len(raw) == 12 else blocked  # noqa: PLR2004
    if call in _POLLS and memory is not None and blocked.arguments[1] == 1:
        raw = memory.read(first, 4)
        return blocked._replace(fd=struct.unpack("<i", raw)[0]) if len(raw) == 4 else blocked  # noqa: PLR2004
    if call not in _FIRST_NEITHER and first < 1 << 20:
        return blocked._replace(fd=first)
    return blocked


def descriptors(pids: Iterable[int]) -> dict[int, dict[int, str]]:
    """The links of /proc/PID/fd by number."""
    found = {}
    for pid in pids:
        numbers = [name for name in entries(f"/proc/{pid}/fd") if name.isdigit()]
        links = {
            int(number): link(f"/proc/{pid}/fd/{number}") for number in numbers[:_MOST_DESCRIPTORS]
        }
        if links:
            found[pid] = links
    return found
