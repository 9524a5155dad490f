"""The result of a sampling command: weighted stacks with labels, and the losses.

Every command that counts stacks fills one `Profile`, and every writer of this room prints one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from operator import itemgetter
from typing import TYPE_CHECKING

from purebpf.results.model.interned_stack import Numbered
from purebpf.results.model.loss import Loss
from purebpf.results.model.stack_end import CUT, WHOLE, StackEnd
from purebpf.symbols.frame import Frame, Unknown, is_unnamed_function
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.symbols.file_ids import FileIds, FileKey

__all__ = ["Labels", "Marks", "Profile", "Row", "Slots", "Stack", "Unnamed", "Waker"]

Stack = tuple[Frame | Unknown, ...] | Numbered
"""Leaf first. Empty where there was no such stack; None in a row: there was one, and it is lost."""

Slots = tuple[tuple[int, int], ...]


class Labels(NamedTuple):
    """The task of a stack. `comm` is the thread's name, `process` its leader's if that differs.

    `tid` is 0 where threads are counted together, `cpu` -1 where CPUs are. `cgroup` is a path or a
    container's name, `state` the thread's activity ("running", "D"); both may be "".
    """

    comm: str
    pid: int = 0
    tid: int = 0
    cpu: int = -1
    cgroup: str = ""
    state: str = ""
    process: str = ""

    @property
    def process_name(self) -> str:
        """The name of the process."""
        return self.process or self.comm


class Waker(NamedTuple):
    """The thread that ended a wait, and its place."""

    comm: str
    pid: int
    tid: int
    user: Stack | None
    kernel: Stack | None


class Marks(NamedTuple):
    """Further facts about time that a thread spent.

    `kind` is "on-CPU", "off-CPU" or "run-queue" where one profile has them all. `is_open`: it had
    not ended when the run did. `times` is how many waits were added up, `runnable` which part of
    the weight passed after the wake-up, -1 where that is not known. `ended_ns` dates a single wait,
    on CLOCK_MONOTONIC; 0 for a sum. `end` is how the user stack ended. `call` and `argument` are
    the number and first argument of the system call that the thread is in; -1: not known.
    `is_idle`: the thread waited for something to do.
    """

    kind: str = ""
    is_open: bool = False
    waker: Waker | None = None
    times: int = 0
    runnable: int = -1
    ended_ns: int = 0
    end: StackEnd = WHOLE
    call: int = -1
    argument: int = 0
    is_idle: bool = False


NO_MARKS = Marks()


class Row(NamedTuple):
    """One stack and its weight, in the profile's unit.

    `slots` are the times: (slot, weight) pairs that add up to `weight`. Slot n begins n times
    `Profile.slot_ns` after the start. Empty if only the sum is available.
    """

    user: Stack | None
    kernel: Stack | None
    weight: int
    labels: Labels
    slots: Slots = ()
    marks: Marks = NO_MARKS


_WEIGHT_AND_LABELS = itemgetter(Row._fields.index("weight"), Row._fields.index("labels"))


class Unnamed(NamedTuple):
    """The share of frames without a name, each frame weighted as its row.

    `unknown` are in no function that we know, `functions` in one that only its start tells from
    others (`purebpf.symbols.frame.unnamed_function`). `reasons` has the weight of each
    (reason, module) of the unknown ones, heaviest first.
    """

    frames: int
    unknown: int
    reasons: tuple[tuple[str, str, int], ...]
    functions: int = 0

    @property
    def percent(self) -> float:
        """Unknown ones of the frames, 0 to 100."""
        return 100 * self.unknown / self.frames if self.frames else 0.0

    @property
    def function_percent(self) -> float:
        """The share of frames in unnamed functions, 0 to 100."""
        return 100 * self.functions / self.frames if self.frames else 0.0


class Profile:
    """Weighted stacks.

    Attributes:
        title: one sentence: the target of the measurement, and how long it took.
        unit: the unit of weights: "samples", "ns", "calls", "bytes".
        slot_ns: how long a slot of `Row.slots` is; 0 for a profile without a time line.
        about: facts about the run by name, for the reader of a file.
        loss: the samples missing in the numbers, one entry a cause, zero included.
        hints: advice that gives names to unnamed frames, a sentence each.
        cost: the cost of measuring, by name: `run_time_ns` and `run_cnt` of the BPF programs.
        file_ids: the identifiers of files in the stacks, by path and build ID; formats with
            mappings of their own have no use for them.
    """

    def __init__(
        self,
        title: str = "",
        *,
        unit: str = "samples",
        about: Mapping[str, object] | None = None,
        loss: Loss | None = None,
    ) -> None:
        self.title = title
        self.unit = unit
        self.about = dict(about or {})
        self.loss = loss or Loss()
        self.hints: list[str] = []
        self.cost: dict[str, int] = {}
        self.file_ids: Mapping[FileKey, FileIds] = {}
        self.slot_ns = 0
        self._rows: list[Row] = []

    def add(
        self,
        user: Stack | None,
        kernel: Stack | None,
        weight: int,
        labels: Labels,
        slots: Slots = (),
        *,
        marks: Marks = NO_MARKS,
    ) -> None:
        """Add a stack. Equal stacks may be added again; writers that merge lines add them up."""
        self._rows.append(Row(user, kernel, weight, labels, slots, marks))

    def add_row(self, row: Row) -> None:
        """Add a complete row."""
        self._rows.append(row)

    def without_rows(self) -> Profile:
        """The same, and empty."""
        empty = copy(self)
        empty._rows = []  # noqa: SLF001
        return empty

    def name_processes(self, name: Callable[[int], str]) -> None:
        """Set the name of each row's process; `name` returns it by process ID."""
        known: dict[Labels, Labels] = {}
        for at, row in enumerate(self._rows):
            labels = known.get(row.labels)
            if labels is None:
                own, process = row.labels.comm, name(row.labels.pid)
                labels = row.labels._replace(process="" if process == own else process)
                known[row.labels] = labels
            self._rows[at] = row._replace(labels=labels)

    def rows(self) -> list[Row]:
        """Every stack, the heaviest last; equal weights in the order of their labels."""
        return sorted(self._rows, key=_WEIGHT_AND_LABELS)

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(row.weight for row in self._rows)

    def unnamed(self) -> Unnamed:
        """Count the frames without a name, by reason and module; equal weights by their names."""
        frames = functions = 0
        reasons: Counter[tuple[str, str]] = Counter()
        for user, kernel, weight, *_ in self._rows:
            for stack in (user, kernel):
                if not stack:
                    continue
                frames += weight * (len(stack) - (stack[-1].kind == CUT))
                for entry in stack:
                    if isinstance(entry, Unknown):
                        reasons[entry.reason, entry.module] += weight
                    elif "!0x" in entry.name and is_unnamed_function(entry):
                        functions += weight
        ranked = sorted((-weight, why, where) for (why, where), weight in reasons.items())
        named = tuple((why, where, -weight) for weight, why, where in ranked)
        return Unnamed(frames, reasons.total(), named, functions)
