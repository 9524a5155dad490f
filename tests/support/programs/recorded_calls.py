"""Samples of a program that records its own calls outside of its heap.

BPF reads the record in the interrupt in which it walks the stack, so that both are of one moment.
A thread's record is an array of 32-bit numbers: two numbers by which it is found, the thread's, and
a third one; at index 8 the depth; from 16 on a function's number and the line of its call for each
depth.
"""

from __future__ import annotations

import os
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple

import purebpf
import purebpf.build
import purebpf.stacks
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.symbols.frame import Address, Frame, Unknown

__all__ = ["Call", "Recorded", "Verdicts", "find_records", "recorded", "write_out"]

_MAGIC = struct.pack("<2I", 0x50FEB0F1, 0x1A2B3C4D)
_MAGIC_END = struct.pack("<I", 0x77665544)
_LARGEST_MAPPING = 1 << 30
_PATH = 5
"""The word of a line of /proc/PID/maps that has the file."""
_DEEPEST = 64
_RARE = 32
_PROGRAM = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

struct call { __u32 function; __u32 line; };
struct event { __u32 tid; __u32 depth; struct call calls[64]; purebpf_stack stack; };
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 21); __type(value, struct event);
} events SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64);
	__type(key, __u32); __type(value, __u64);
} records SEC(".maps");

SEC("perf_event") int on_sample(void *ctx)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 *record = bpf_map_lookup_elem(&records, &tid);
	struct event *event;

	if (!record || !(event = bpf_ringbuf_reserve(&events, sizeof(*event), 0)))
		return 0;
	event->tid = tid;
	event->depth = ~0u;
	bpf_probe_read_user(&event->depth, 4, (void *)(*record + 32));
	bpf_probe_read_user(event->calls, sizeof(event->calls), (void *)(*record + 64));
	event->stack = user_stack(ctx);
	bpf_ringbuf_submit(event, 0);
	return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""


class Call(NamedTuple):
    """An active function, and the line on which it calls the next one; 0: none yet."""

    function: str
    line: int


class Recorded(NamedTuple):
    """A sample.

    Attributes:
        calls: the program's record, outermost first.
        frames: of the stack, innermost first.
        end: why callers are missing; "".
    """

    calls: tuple[Call, ...]
    frames: tuple[Frame | Unknown, ...]
    end: str


def write_out(source: str) -> tuple[str, list[str]]:
    """Write out IN, AT and OUT of a program; return its text and its functions by number.

    The depth of a function is its variable `d`. A text between RARE and END is repeated, with @ for
    each number below `_RARE`.
    """
    functions: list[str] = []

    def repeat(match: re.Match[str]) -> str:
        return "".join(match[1].replace("@", str(at)) for at in range(_RARE))

    def enter(match: re.Match[str]) -> str:
        functions.append(match[1])
        return f"R[16+2*d]={len(functions) - 1}; R[17+2*d]=0; R[8]=d+1;"

    lines = []
    source = re.sub(r"// RARE\n(.*?)// END\n", repeat, source, flags=re.DOTALL)
    for number, text in enumerate(source.splitlines(), 1):
        entered = re.sub(r"\bIN\((\w+)\);", enter, text)
        entered = re.sub(r"\bAT;", f"R[17+2*d]={number};", entered)
        lines.append(re.sub(r"\bOUT;", "R[8]=d;", entered))
    return "\n".join(lines) + "\n", functions


def find_records(pid: int) -> dict[int, int]:
    """The addresses of the records in a process's memory, by the number of their threads."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split()
            begin, end = (int(each, 16) for each in words[0].split("-"))
            is_own = len(words) <= _PATH or words[_PATH] == "[heap]"
            if not is_own or not words[1].startswith("rw") or end - begin > _LARGEST_MAPPING:
                continue
            try:
                text = os.pread(memory.fileno(), end - begin, begin)
            except OSError:
                continue
            for match in re.finditer(re.escape(_MAGIC), text):
                at = match.start()
                if text[at + 12 : at + 16] == _MAGIC_END:
                    found[struct.unpack_from("<I", text, at + 8)[0]] = begin + at
    return found


class _Samples:
    """See `recorded`."""

    def __init__(
        self, traced: purebpf.stacks.StackObject, events: PerfEvents, functions: Sequence[str]
    ) -> None:
        self._traced = traced
        self._events = events
        self._functions = functions
        java = traced._stacks._symbolizer.java
        assert java is not None
        self._frames_of = java.frames
        self._numbers = count(1)
        java.frames = self._numbered  # type: ignore[method-assign]

    def _numbered(self, word: int) -> list[Frame | Unknown]:
        """The functions of one physical frame have one address, and no other frame has it."""
        at = Address(next(self._numbers))
        return [each._replace(address=at) for each in self._frames_of(word)]

    def settle(self, timeout: float) -> None:
        """Take samples and forget them until there are tables and names for the next ones."""
        self._events.enable()
        self._traced.settle(timeout)
        self._events.disable()
        for _ in self._traced.read("events", timeout=0.1):
            pass

    def take(self, seconds: float) -> Iterator[Recorded]:
        """Yield the samples of some seconds; there are none while their functions are named."""
        self._events.enable()
        self._traced.wait(seconds)
        self._events.disable()
        for event in self._traced.read("events", timeout=0.1):
            if event.depth > _DEEPEST:
                continue
            calls = [
                Call(self._functions[each.function], each.line)
                for each in event.calls[: event.depth]
            ]
            named = self._traced._stacks.name(int(event.stack))
            yield Recorded(tuple(calls), tuple(named.frames), named.end)


@contextmanager
def recorded(
    pid: int, records: Mapping[int, int], functions: Sequence[str], frequency: int = 499
) -> Iterator[_Samples]:
    """Sample the threads of a process; `records` has the address of each one's record."""
    spec = purebpf.read_object(purebpf.build.compile(_PROGRAM))
    with purebpf.stacks.load(spec, pids=[pid], capacity=1 << 16) as traced:
        for tid, address in records.items():
            traced.maps["records"][tid] = address
        with PerfEvents.sampling(frequency=frequency) as events, ExitStack() as links:
            for event in events:
                links.enter_context(traced.programs["on_sample"].attach(event))
            yield _Samples(traced, events, functions)


class Verdicts:
    """Counts samples by how their stacks compare with the record.

    Between two calls the record is early or late by one function. Tables of compiled code say which
    inlined functions run at calls alone, so that only the innermost physical frame may differ more.

    Args:
        own: the name of a frame if it is the program's own, else "".
    """

    def __init__(self, own: Callable[[Frame], str]) -> None:
        self._own = own
        self.counts = Counter[str]()
        self.lines = 0
        self.problems: list[str] = []

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def share(self, beginning: str) -> float:
        """The share of the verdicts that begin with a text."""
        found = sum(n for verdict, n in self.counts.items() if verdict.startswith(beginning))
        return found / max(self.total, 1)

    def add(self, sample: Recorded) -> str:
        """Judge a sample."""
        verdict = self._judge(sample)
        self.counts[verdict] += 1
        if verdict.startswith(("wrong", "cut")) and len(self.problems) < 20:
            calls = " < ".join(f"{name}:{line}" for name, line in reversed(sample.calls))
            frames = [frame for frame in sample.frames if isinstance(frame, Frame)]
            names = " < ".join(f"{frame.name[:60]}:{frame.line}" for frame in frames)
            self.problems.append(f"{verdict}: {calls}; {names}")
        return verdict

    def _judge(self, sample: Recorded) -> str:
        groups: list[list[tuple[str, int]]] = []
        for _, group in groupby(sample.frames, lambda frame: frame.address):
            own = [
                (name, each.line)
                for each in group
                if isinstance(each, Frame) and (name := self._own(each))
            ]
            if own:
                groups.append(own[::-1])
        innermost, outer = (groups[0], groups[1:]) if groups else ([], [])
        callers = [call for group in reversed(outer) for call in group]
        every, calls = [*callers, *innermost], list(sample.calls)
        if sample.end:
            return f"cut: {sample.end}"
        names = [name for name, _ in callers]
        if names != [call.function for call in calls[: len(names)]] and (
            names[:-1] != [call.function for call in calls]
        ):
            return "wrong callers"
        for (_, line), call in zip(callers, calls[:-1], strict=False):
            self.lines += 1
            if line != call.line:
                return f"wrong line: {call.function} {line} for {call.line}"
        found, told = [name for name, _ in every], [call.function for call in calls]
        if found == told:
            return "equal"
        if found[:-1] == told or found == told[:-1]:
            return "one more or less"
        return "the innermost frame differs"
