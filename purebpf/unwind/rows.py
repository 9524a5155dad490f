"""The rows of a file: rules and the addresses that they hold from, in ascending order."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from operator import eq
from typing import TypeVar

from purebpf.tuples import NamedTuple
from purebpf.unwind.budget import Budget
from purebpf.unwind.entries import Cie, Fde
from purebpf.unwind.interpreter import PlainRule, interpret
from purebpf.unwind.rule import CFA_DEPTH, UNSUPPORTED, How, Rule

__all__ = ["NO_RULE", "Entries", "Rows", "RuleTable", "finish"]

NO_RULE = 0
"""The id of code without a rule."""

_MOST_RULES = 1 << 16
"""Of one file. The most in Debian 12 are 883."""
_MOST_KEPT = 1 << 18
"""Rows of programs that windows keep for the next one: 2 MB."""
_LARGEST_OFFSET = (1 << 32) - 1
_SLICE_ENTRIES = 2048
"""FDEs laid out between two yields: about 3 ms."""

_Made = TypeVar("_Made")


def finish(work: Generator[None, None, _Made]) -> _Made:
    """Do work that comes in slices at once."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        made: _Made = end.value
        return made


class Rows(NamedTuple):
    """`ids[n]` is the rule of addresses from `starts[n]` up to `starts[n + 1]`; 12 bytes a row."""

    starts: array[int]
    ids: array[int]

    def rule_id(self, address: int) -> int:
        """The rule of an address; `NO_RULE` outside of all rows."""
        at = bisect_right(self.starts, address) - 1
        return self.ids[at] if at >= 0 else NO_RULE


class RuleTable:
    """The rules of one file, each once. Equal instructions are interpreted once.

    The rows of distinct instructions, "programs", are numbered, and kept in flat arrays: as
    separate objects they would keep the garbage collector busy for a third of the time.

    Attributes:
        rules: by id; the one of `NO_RULE` is `UNSUPPORTED`, too.
        rows_interpreted: how many rows the interpreter made.
    """

    def __init__(self, fp: int, ra: int) -> None:
        self.rules: list[Rule] = [UNSUPPORTED, UNSUPPORTED]
        self.rows_interpreted = 0
        self._fp, self._ra = fp, ra
        self._keepers = 0
        self._ids: dict[PlainRule, int] = {UNSUPPORTED: 1}
        self.forget()

    @contextmanager
    def keep_programs(self) -> Iterator[None]:
        """Programs keep their numbers in this context: `forget` is for later."""
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1

    def forget(self) -> None:
        """Drop data that only helps to make more rows, and the numbers of programs; the rules
        stay.
        """
        if self._keepers:
            return
        self._known: dict[Cie, dict[bytes, int]] = {}
        self._places = array("I", (0,))
        self._offsets = array("I")
        self._numbers = array("I")

    @property
    def is_full(self) -> bool:
        """True when it is time to `forget`."""
        return len(self._offsets) > _MOST_KEPT

    def known(self, cie: Cie) -> dict[bytes, int]:
        """The programs of a CIE that are there already, by their instructions."""
        rules = self._known.get(cie)
        if rules is None:
            rules = self._known[cie] = {}
        return rules

    def program(self, fde: Fde, budget: Budget) -> int:
        """The number of an FDE's rows.

        Raises:
            OverBudgetError: its instructions take more steps than remain.
        """
        known = self.known(fde.cie)
        number = known.get(fde.code)
        return self.add_program(fde, known, budget) if number is None else number

    def add_program(self, fde: Fde, known: dict[bytes, int], budget: Budget) -> int:
        """Add a program that is not there yet; `known` has the programs of its CIE.

        Raises:
            OverBudgetError: as `program`.
        """
        budget.spend(len(fde.code) + len(fde.cie.code))
        offsets, rules, movable = interpret(fde, self._fp)
        if fde.cie.ra != self._ra:  # another column: not the register that BPF looks into
            elsewhere = (How.REGISTER, fde.cie.ra)
            rules = [(*rule[:3], rule[3] or elsewhere, rule[4]) for rule in rules]
        self.rows_interpreted += len(rules)
        offsets, ids = self._numbered(offsets, rules)
        return self._keep(offsets, ids, known, fde.code if movable else None)

    def depth(self, depth: int | None) -> int:
        """Return the rule of code that has only the depth of its stack, if that depth is there."""
        return NO_RULE if depth is None else self.number((CFA_DEPTH, depth, None, None, False))

    def number(self, rule: PlainRule) -> int:
        """Return the number of a rule."""
        known = self._ids.get(rule)
        return self._intern(rule) if known is None else known

    def _numbered(self, offsets: list[int], rules: list[PlainRule]) -> tuple[list[int], list[int]]:
        """Rows with the numbers of their rules, without those that cover or change nothing."""
        known = self._ids
        try:
            ids = [known[rule] for rule in rules]
        except KeyError:
            ids = [known.get(rule) or self._intern(rule) for rule in rules]
        if (
            offsets[-1] <= _LARGEST_OFFSET
            and not any(map(eq, ids, ids[1:]))
            and len(set(offsets)) == len(offsets)
        ):
            return offsets, ids
        kept_offsets: list[int] = []
        kept_ids: list[int] = []
        for offset, rule_id in zip(offsets, ids, strict=True):
            if offset > _LARGEST_OFFSET:
                break
            if kept_offsets and kept_offsets[-1] == offset:  # the row before covers nothing
                kept_offsets.pop()
                kept_ids.pop()
            if not kept_ids or kept_ids[-1] != rule_id:
                kept_offsets.append(offset)
                kept_ids.append(rule_id)
        return kept_offsets, kept_ids

    def unreadable(self) -> int:
        """Return a program for entries that could not be interpreted."""
        return self._keep([0], [1], {}, None)

    @property
    def programs(self) -> tuple[array[int], array[int], array[int]]:
        """The index of each program's first row in the following rows, and their number at the end.

        Then the offsets from the start of an FDE, and the rules from there on.
        """
        return self._places, self._offsets, self._numbers

    def _keep(
        self, offsets: list[int], ids: list[int], known: dict[bytes, int], code: bytes | None
    ) -> int:
        number = len(self._places) - 1
        self._offsets.fromlist(offsets)
        self._numbers.fromlist(ids)
        self._places.append(len(self._offsets))
        if code is not None:
            known[code] = number
        return number

    def _intern(self, rule: PlainRule) -> int:
        """The number of a rule that is new."""
        if len(self.rules) >= _MOST_RULES:
            return 1
        number = self._ids[rule] = len(self.rules)
        self.rules.append(Rule(*rule))
        return number


class Entries:
    """FDEs, as much of them as it takes to lay out their rows."""

    def __init__(self) -> None:
        self._starts, self._ends, self._programs = array("Q"), array("Q"), array("I")

    def add(self, start: int, end: int, program: int) -> None:
        """Add the next one in the order of the section, which decides between equal starts."""
        self._starts.append(start)
        self._ends.append(end)
        self._programs.append(program)

    def lay_out(self, table: RuleTable) -> Rows:
        """One table of rows; see `laying_out`."""
        return finish(self.laying_out(table))

    def laying_out(self, table: RuleTable) -> Generator[None, None, Rows]:
        """One table of rows, in slices.

        Where FDEs overlap, the later start wins; among equal starts the one added last. There is no
        rule between FDEs, and none after the last. This holds for padding as well: makecontext(3)
        starts a stack with a function's start as return address, and the look-up uses the byte
        before it.
        """
        starts, ends, programs = self._starts, self._ends, self._programs
        order = sorted(range(len(starts)), key=starts.__getitem__)
        addresses, ids = array("Q"), array("I")
        end = last = -1
        places, offsets, numbers = table.programs
        for done, (at, following) in enumerate(zip_longest(order, order[1:])):
            if not done % _SLICE_ENTRIES:
                yield
            start, stop = starts[at], ends[at]
            if following is not None and starts[following] < stop:
                stop = starts[following]
            if stop <= start:
                continue
            if start > end and last > NO_RULE:
                addresses.append(end)
                ids.append(NO_RULE)
                last = NO_RULE
            program = programs[at]
            first, past = places[program], places[program + 1]
            if offsets[past - 1] >= stop - start:
                past = bisect_left(offsets, stop - start, first, past)
            if numbers[first] == last:
                first += 1
            addresses.extend(map(start.__add__, offsets[first:past]))
            ids.extend(numbers[first:past])
            last, end = numbers[past - 1], stop
        if last > NO_RULE:
            addresses.append(end)
            ids.append(NO_RULE)
        return Rows(addresses, ids)
