"""Lines of the source, and inlined functions, put into a profile that has only names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.results.model.profile import Profile, Row, Stack
from purebpf.symbols.demangle import demangle
from purebpf.symbols.frame import FileOffset, Frame, Unknown
from purebpf.symbols.source_lines import SourceLine
from purebpf.tuples import NamedTuple

__all__ = ["Answers", "LineQuery", "Module", "wanted", "with_lines"]

_KEEP_PIDS = 4


class Module(NamedTuple):
    """A file that code is from; `build_id` is "" where it has none."""

    path: str
    build_id: str


class LineQuery(NamedTuple):
    """A query about a file: its places, and some processes that map it."""

    places: set[FileOffset]
    pids: dict[int, None]


Answers = Mapping[Module, Mapping[FileOffset, tuple[SourceLine, ...]]]
"""For each file and place: the functions there, innermost first, and where in the source."""


def wanted(profile: Profile) -> dict[Module, LineQuery]:
    """The places to ask about by file, the file that has most weight first."""
    asked: dict[Module, LineQuery] = {}
    weights: dict[Module, int] = {}

    def note(stack: Stack | None, pid: int, weight: int) -> None:
        for depth, entry in enumerate(stack or ()):
            place = _place(entry, depth)
            if place is None:
                continue
            module = Module(entry.module, entry.build_id)
            known = asked.get(module)
            if known is None:
                known = asked[module] = LineQuery(set(), {})
            known.places.add(place)
            weights[module] = weights.get(module, 0) + weight
            if pid and len(known.pids) < _KEEP_PIDS:
                known.pids[pid] = None

    for row in profile.rows():
        note(row.user, row.labels.pid, row.weight)
        if row.marks.waker:
            note(row.marks.waker.user, row.marks.waker.pid, row.weight)
    heaviest = sorted(asked, key=lambda module: (-weights[module], module))
    return {module: asked[module] for module in heaviest}


def with_lines(profile: Profile, answers: Answers) -> Profile:
    """Return the same profile, with lines and inlined functions as far as they are available."""
    made = profile.without_rows()
    expand = _expander(answers)
    for row in profile.rows():
        marks = row.marks
        if marks.waker:
            user, kernel = expand(marks.waker.user), _alone(marks.waker.kernel)
            marks = marks._replace(waker=marks.waker._replace(user=user, kernel=kernel))
        user, kernel = expand(row.user), _alone(row.kernel)
        made.add_row(Row(user, kernel, row.weight, row.labels, row.slots, marks))
    return made


def _alone(stack: Stack | None) -> Stack | None:
    """A stack without the table of a saved profile, which has the frames as they were before."""
    return None if stack is None else tuple(stack)


def _place(entry: Frame | Unknown, depth: int) -> FileOffset | None:
    """Return the byte of the file that counts: a caller is behind its call, whose line is
    wanted.
    """
    if not isinstance(entry, Frame) or entry.kind != "user" or entry.file_offset < 0:
        return None
    if not entry.module.startswith("/"):  # "[vdso]"
        return None
    return FileOffset(entry.file_offset - (depth > 0 and entry.offset > 0))


def _expander(answers: Answers) -> Callable[[Stack | None], Stack | None]:
    """Return a function that puts answers into a stack; equal frames become the same objects, as
    writers like it.
    """
    known: dict[tuple[Frame | Unknown, FileOffset], Stack] = {}
    nothing: Mapping[FileOffset, tuple[SourceLine, ...]] = {}

    def expand(stack: Stack | None) -> Stack | None:
        if not stack:
            return stack
        expanded: list[Frame | Unknown] = []
        for depth, entry in enumerate(stack):
            place = _place(entry, depth)
            if place is None or not isinstance(entry, Frame):
                expanded.append(entry)
                continue
            frames = known.get((entry, place))
            if frames is None:
                lines = answers.get(Module(entry.module, entry.build_id), nothing).get(place, ())
                frames = known[entry, place] = tuple(_frames(entry, lines))
            expanded += frames
        return tuple(expanded)

    return expand


def _frames(entry: Frame, lines: tuple[SourceLine, ...]) -> list[Frame]:
    """The inlined functions at an address, then the function itself, which keeps its name.

    An inlined function has no name if that is in a file that several debug files share (dwz -m),
    which llvm-symbolizer does not read: what it does counts for its caller.
    """
    if not lines:
        return [entry]
    *inlined, own = lines
    inlined_frames = [
        entry._replace(
            name=demangle(source.function),
            offset=0,
            kind="inlined",
            file=source.file,
            line=source.line,
        )
        for source in inlined
        if source.function
    ]
    return [*inlined_frames, entry._replace(file=own.file, line=own.line)]
