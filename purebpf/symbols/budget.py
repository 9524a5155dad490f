"""Limits of naming: bytes read and seconds, for each file, process, user and run.

The user of a process decides the contents of its files, perf maps and jitdumps, and so the cost of
naming its addresses. No limit on a single format helps against a hundred files, or against a
format's next surprise. So all work is charged to accounts: `Budget.on_behalf` opens the accounts,
and `Budget.spend` is called wherever bytes are read and in every long loop.

An account is full again after ten minutes: a live page runs for weeks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from types import TracebackType

from purebpf.errors import PurebpfError
from purebpf.tuples import NamedTuple

__all__ = ["FILE", "PROCESS", "RUN", "USER", "Allowance", "Budget", "OverBudgetError", "Work"]

FILE, PROCESS, USER, RUN = "file", "process", "user", "run"

_PERIOD_S = 600.0
_SAID = 3
_MOST_ACCOUNTS = 4096
"""Then the older half goes, but for users, runs, and what is used up."""
_LITTLE = 0.01
"""Of an account. So who uses as much in each window gains a tenth of it in a period."""


class Allowance(NamedTuple):
    """The capacity of an account: bytes that may be read, and seconds of work."""

    nbytes: int
    seconds: float


ALLOWANCES = {
    FILE: Allowance(768 << 20, 20.0),  # a browser with its symbols: 200 MB, 3 s
    PROCESS: Allowance(1 << 30, 30.0),
    USER: Allowance(4 << 30, 60.0),
    RUN: Allowance(16 << 30, 180.0),
}


class OverBudgetError(PurebpfError):
    """Naming must stop here.

    Attributes:
        kind: of the account that is empty, or "" when `Budget.stop` was called.
        detail: which account, and its limits.
    """

    def __init__(self, kind: str, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(detail)


class _Account:
    __slots__ = ("allowance", "is_empty", "kind", "name", "nbytes", "seconds")

    def __init__(self, kind: str, name: Hashable, allowance: Allowance) -> None:
        self.kind = kind
        self.name = name
        self.allowance = allowance
        self.nbytes = 0
        self.seconds = 0.0
        self.is_empty = False

    def check(self, seconds: float) -> None:
        """See whether it is empty when work has gone on for `seconds` more."""
        nbytes, most = self.allowance
        self.is_empty = self.nbytes > nbytes or self.seconds + seconds > most

    def is_used(self) -> bool:
        """Return True if more than a trifle was spent."""
        nbytes, most = self.allowance
        return self.nbytes > _LITTLE * nbytes or self.seconds > _LITTLE * most

    def problem(self) -> str:
        """Why it is empty."""
        nbytes, seconds = self.allowance
        held = f"{nbytes >> 20} MiB" if self.nbytes > nbytes else f"{seconds:g} s"
        name = "" if self.kind == RUN else f" {self.name}"
        return f"{self.kind}{name} used its {held} of naming"


class Budget:
    """The accounts of a run.

    Args:
        allowances: other ones, by kind of account.
        clock: seconds of work: processor time, so that nothing is lost on a busy machine.
        calendar: seconds until accounts are full again.

    Attributes:
        exceeded: sentences about the accounts that were used up, the first few.
        skipped: addresses that were not looked up for that.
        shortened: names that were cut.
        is_stopped: `stop` was called.
        now: the clock.
    """

    def __init__(
        self,
        allowances: dict[str, Allowance] | None = None,
        clock: Callable[[], float] = time.thread_time,
        calendar: Callable[[], float] = time.monotonic,
    ) -> None:
        self.exceeded: list[str] = []
        self.skipped = 0
        self.shortened = 0
        self.is_stopped = False
        self._allowances = ALLOWANCES | (allowances or {})
        self.now = clock
        self._calendar = calendar
        self._accounts: dict[tuple[str, Hashable], _Account] = {}
        self._period = 0
        self._period_end = 0.0
        self._open: list[tuple[float, list[_Account]]] = []

    def stop(self) -> None:
        """Name nothing more: from now on all work raises. May be called from a signal handler."""
        self.is_stopped = True

    def resume(self) -> None:
        """Name again after `stop`."""
        self.is_stopped = False

    def on_behalf(self, **accounts: Hashable) -> Work:
        """A context for work that these accounts pay for: `on_behalf(process=4711, user=1000)`.

        Contexts nest: work inside is also charged to the outer accounts.

        Raises:
            OverBudgetError: one of them is empty; nothing was done then.
        """
        return Work(self, accounts)

    def spend(self, nbytes: int = 0) -> None:
        """Account for bytes that are about to be read; in loops without any, for the time.

        Raises:
            OverBudgetError: an account is empty.
        """
        if self.is_stopped:
            raise OverBudgetError("", "naming was interrupted")
        now = self.now()
        for _, accounts in self._open:
            for account in accounts:
                account.nbytes += nbytes
        for begun, accounts in reversed(self._open):  # the file before its process
            for account in reversed(accounts):
                account.check(now - begun)
                if account.is_empty:
                    raise self._over(account)

    def forgive(self, seconds: float) -> None:
        """A debuginfod server used that time, which has its own limit."""
        self._open = [(begun + seconds, accounts) for begun, accounts in self._open]

    def enter(self, work: Work) -> None:
        """Open the accounts of a context; it happens for each stack, so it is quick."""
        now = self.now()
        if not self._open and self._calendar() >= self._period_end:
            self._accounts.clear()
            self._period += 1
            self._period_end = self._calendar() + _PERIOD_S
        if work.period != self._period:
            work.period = self._period
            work.accounts = [self._account(kind, name) for kind, name in work.names.items()]
        self.check(work)
        self._open.append((now, work.accounts))

    def check(self, work: Work) -> None:
        """See whether work may go on, without a look at the clock.

        Raises:
            OverBudgetError: one of its accounts is empty.
        """
        if self.is_stopped:
            raise OverBudgetError("", "naming was interrupted")
        for account in work.accounts:
            if account.is_empty:
                raise self._over(account)

    def leave(self) -> None:
        """Close the accounts that were opened last."""
        begun, accounts = self._open.pop()
        seconds = self.now() - begun
        for account in accounts:
            account.seconds += seconds
            if account.seconds > account.allowance[1]:
                account.is_empty = True

    def _account(self, kind: str, name: Hashable) -> _Account:
        key = kind, name
        account = self._accounts.get(key)
        if account is None:
            if len(self._accounts) >= _MOST_ACCOUNTS:
                self._drop_old_accounts()
            account = self._accounts[key] = _Account(kind, name, self._allowances[kind])
        return account

    def _drop_old_accounts(self) -> None:
        """Drop old accounts, mostly of processes that ended: a build has tens of thousands in a
        period.
        """
        self._accounts = {
            key: account
            for at, (key, account) in enumerate(self._accounts.items())
            if at >= _MOST_ACCOUNTS // 2 or key[0] in (USER, RUN) or account.is_empty
        }

    def rest(self) -> None:
        """Forget processes that used next to nothing: most are gone between two windows of a run.

        The spending of other accounts stays until they are full again.
        """
        self._accounts = {
            key: account
            for key, account in self._accounts.items()
            if key[0] != PROCESS or account.is_empty or account.is_used()
        }

    def _over(self, account: _Account) -> OverBudgetError:
        problem = account.problem()
        if problem not in self.exceeded and len(self.exceeded) < _SAID:
            self.exceeded.append(problem)
        return OverBudgetError(account.kind, problem)


class Work:
    """The context that `Budget.on_behalf` gives; it may be entered again and again.

    Attributes:
        names: of the accounts, by kind.
        accounts: these, since `period` began.
    """

    __slots__ = ("_budget", "accounts", "names", "period")

    def __init__(self, budget: Budget, names: dict[str, Hashable]) -> None:
        self._budget = budget
        self.names = names
        self.accounts: list[_Account] = []
        self.period = -1

    def __enter__(self) -> None:
        self._budget.enter(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._budget.leave()
