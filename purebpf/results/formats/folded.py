"""Folded stacks, one line each, for flame graphs: `comm;root;...;leaf count`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from purebpf.errors import FormatError
from purebpf.results.formats.fractions import Fractions
from purebpf.results.model.loss import Loss
from purebpf.results.model.profile import Labels, Profile, Row, Stack, Waker
from purebpf.results.model.spelling import MISSED_KERNEL, MISSED_USER, NO_STACK, UNKNOWN, printable
from purebpf.results.shape.per_frame_cache import Entries
from purebpf.symbols.frame import Address, Frame, Reason, Unknown

__all__ = ["lines", "parse"]

_KERNEL_MARK = "_[k]"
_MARKS = (
    (_KERNEL_MARK, "kernel", ""),
    ("_[i]", "inlined", ""),
    *((f"_[{letter}]", "user", "[jit]") for letter in "j01"),
)
_SECOND_COUNT = re.compile(r"\S\s+\d+(?:\.\d*)?$", re.ASCII)
"""A count at the end of a path. Names may end like that, but not those of all lines."""
_REMARK = re.compile(r"# \w+: [^;]*$", re.ASCII)
"""A line about the measurement, such as `# duration: 1000`, as Austin writes it."""
_DIGITS = 18
"""A count fits in 64 bits, as the other formats have it."""

_KINDS = {"": "", "on-CPU": "_[on]", "off-CPU": "_[off]", "run-queue": "_[rq]"}


def lines(
    profile: Profile,
    *,
    delimiter: bool = False,
    annotations: bool = False,
    scale: int = 1,
    by_thread: bool = False,
) -> Iterator[str]:
    """One line a distinct path, the heaviest last.

    User frames come first, root to leaf, then kernel frames. Rows that fold to the same line
    (other offsets, other processes of the same name) are added up. A `;` inside a name becomes a
    `:`, since it separates frames.

    Args:
        profile: the profile to fold; weights are unchanged.
        delimiter: put a `-` between a user and a kernel stack.
        annotations: mark kernel frames with `_[k]`.
        scale: divide the weights by this, once they are added up.
        by_thread: begin with `comm/tid` instead of the comm.

    Where time has a kind, each frame is marked with it: `_[on]`, `_[off]`, `_[rq]`. A waker's
    stack is on top of the one it woke, behind `--`, from leaf to root, as bcc's offwaketime has it.
    """
    names = _StackNames(annotations=annotations)
    folded: Counter[str] = Counter()
    for row in profile.rows():
        path = _path(row, names, delimiter=delimiter, by_thread=by_thread)
        folded[path] += row.weight
    for path, weight in sorted(folded.items(), key=lambda item: (item[1], item[0])):
        yield f"{path} {weight // scale}\n"


def _path(row: Row, names: _StackNames, *, delimiter: bool, by_thread: bool) -> str:
    mark = _KINDS.get(row.marks.kind, "")
    frames = names.of(row.user, MISSED_USER)
    if delimiter and row.user and row.kernel:
        frames.append("-")
    frames += names.of(row.kernel, MISSED_KERNEL)
    if mark:
        frames = [frame + mark for frame in frames or [NO_STACK]]
    owner = _name(row.labels.comm)
    path = [f"{owner}/{row.labels.tid}" if by_thread else owner, *frames]
    if row.marks.waker:
        path += _waker(row.marks.waker, names)
    return ";".join(path)


def _waker(waker: Waker, names: _StackNames) -> list[str]:
    stack = names.of(waker.user, MISSED_USER) + names.of(waker.kernel, MISSED_KERNEL)
    return ["--", *reversed(stack), _name(waker.comm)]


def _name(text: str) -> str:
    return printable(text).replace(";", ":")


class _StackNames:
    """The names of a stack from root to leaf."""

    def __init__(self, *, annotations: bool) -> None:
        self._mark = _KERNEL_MARK if annotations else ""
        self._names = Entries(self._spell)

    def of(self, stack: Stack | None, missed: str) -> list[str]:
        if stack is None:
            return [missed]
        names = self._names.of(stack)
        names.reverse()
        return names

    def _spell(self, entry: Frame | Unknown) -> str:
        name = UNKNOWN if isinstance(entry, Unknown) else _name(entry.name)
        return name + self._mark if entry.kind == "kernel" else name


def parse(text: Iterable[str], source: str = "folded stacks") -> Profile:
    """Return the profile of such lines: `lines`' own, or another tool's.

    The first name of a line is the process. Frames marked `_[k]` are the kernel's, `_[i]` inlined
    and `_[j]` generated code, as async-profiler and stackcollapse-perf.pl write them; without marks
    user and kernel frames look alike, and all count as user frames. The lines have no modules,
    addresses or pids. Counts with decimals are rounded, once those of the same stack are added up;
    the loss `below_a_half` counts the stacks of which nothing is left.

    A line that begins with a blank and has nothing but a count is a stack without frames.

    Raises:
        FormatError: a line has no count, or all have two, or none a stack; `source` is the name of
            the lines.
    """
    profile = Profile(f"Folded stacks of {source}")
    known: dict[str, Frame | Unknown] = {}
    fractions: Fractions[str] = Fractions()
    counted = with_two = with_stack = 0
    for number, line in enumerate(text, 1):
        line = line.rstrip()
        if _REMARK.match(line):
            continue
        path, count = _split_count(line)
        whole, _, decimals = count.partition(".")
        counted += 1
        with_two += _SECOND_COUNT.search(path) is not None
        has_stack = path or line[:1].isspace()  # py-spy writes samples without a frame
        if not has_stack or not (whole.isascii() and whole.isdigit() and _is_decimals(decimals)):
            if not line or line.startswith("#"):
                counted -= 1
                continue  # a comment; with a count it is a stack, as processes may be called `#x`
            raise FormatError(source, f"line {number}", f"{line[-40:]!r} does not end with a count")
        if len(whole) > _DIGITS:
            raise FormatError(source, f"line {number}", f"a count of {len(whole)} digits")
        with_stack += bool(path)
        weight = fractions.take(path, float(count)) if decimals else int(whole)
        if weight or not decimals:
            _add(profile, path, weight, known)
    if counted and with_two == counted:
        problem = (
            "each line ends with two counts, as difffolded.pl and inferno-diff-folded write them. "
            "Convert the two files that they compared, or compare those: purebpf diff BEFORE AFTER"
        )
        raise FormatError(source, "line 1", problem)
    if counted and not with_stack:
        raise FormatError(source, "line 1", "counts without stacks")
    for path in fractions.rounded():
        _add(profile, path, 1, known)
    if causes := fractions.causes():
        profile.loss = Loss(None, profile.total, 0, causes)
    return profile


def _split_count(line: str) -> tuple[str, str]:
    """A stack and its count: blanks or tabs between them, as flamegraph.pl takes them."""
    path, _, count = line.rpartition(" ")
    if "\t" in count:
        path, _, count = line.rpartition("\t")
    return path.rstrip(), count


def _add(profile: Profile, path: str, weight: int, known: dict[str, Frame | Unknown]) -> None:
    comm, *names = path.split(";")
    stacks: dict[str, list[Frame | Unknown] | None] = {"user": [], "kernel": []}
    for name in names:
        if name in _MISSED:
            stacks[_MISSED[name]] = None
            continue
        entry = known.get(name) or known.setdefault(name, _parse_frame(name))
        stack = stacks["kernel" if entry.kind == "kernel" else "user"]
        if stack is not None and name != "-":
            stack.append(entry)
    user, kernel = (None if stack is None else tuple(reversed(stack)) for stack in stacks.values())
    profile.add(user, kernel, weight, Labels(comm))


def _is_decimals(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit())


_MISSED = {MISSED_USER: "user", MISSED_KERNEL: "kernel"}


def _parse_frame(name: str) -> Frame | Unknown:
    kind, module = "user", ""
    for mark, marked, where in _MARKS:
        if name.endswith(mark):
            name, kind, module = name.removesuffix(mark), marked, where
            break
    if name == UNKNOWN:
        return Unknown(Reason.NOT_FOUND, "", Address(0), kind if kind == "kernel" else "user")
    return Frame(name, 0, module, Address(0), kind)
