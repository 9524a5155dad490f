"""Lines that count goroutines by own function, those at work first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from purebpf.cli.places import wrapped_place
from purebpf.findings.facts import StackFrame
from purebpf.findings.goroutines import judge_goroutine
from purebpf.findings.ownership import Program
from purebpf.findings.places import IDLE, WORK, TimePlace
from purebpf.tools.dump.model import ProcessDump

__all__ = ["goroutine_places"]

_MOST_PLACES, _MOST_FUNCTIONS = 10, 3


def goroutine_places(dump: ProcessDump) -> Iterator[str]:
    """Return a line for each own function; goroutines of libraries are counted together."""
    counts: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    of_libraries = 0
    for group in dump.goroutines:
        user = [StackFrame(frame.name, frame.file) for frame in group.frames]
        program = Program(user[0].module if user else "", is_go=True)
        kind, _, is_called = judge_goroutine(program, user)
        names = [frame.name for frame in user if program.owns(frame)]
        names = names or [frame.name for frame in user if program.is_main(frame)]
        if not names:
            of_libraries += group.number
            continue
        use = WORK if is_called or kind == "lock" else IDLE
        counts[use, kind, tuple(names[:_MOST_FUNCTIONS])] += group.number
    places = sorted(counts.items(), key=lambda item: (item[0][0] != WORK, -item[1]))
    for (use, kind, path), count in places[:_MOST_PLACES]:
        place = TimePlace("", (dump.pid,), count, kind, use, path, 0.0, 0, 0.0)
        yield from wrapped_place(place, "idle: " if use == IDLE else "", "goroutines")
    if of_libraries:
        yield f"  {of_libraries} goroutines of Go's runtime and libraries\n"
