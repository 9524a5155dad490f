"""The accounts that naming is paid from."""

from __future__ import annotations

import pytest

from purebpf.symbols.budget import FILE, PROCESS, RUN, USER, Allowance, Budget, OverBudgetError


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def budget(clock):
    return Budget({PROCESS: Allowance(100, 10.0), USER: Allowance(150, 15.0)}, clock, clock)


def test_bytes_of_a_process(budget):
    with budget.on_behalf(process=1):
        budget.spend(100)
        with pytest.raises(OverBudgetError, match="process 1 used its 0 MiB of naming") as caught:
            budget.spend(1)
    assert caught.value.kind == PROCESS
    with pytest.raises(OverBudgetError), budget.on_behalf(process=1):
        pytest.fail("nothing is left")
    with budget.on_behalf(process=2):
        budget.spend(100)


def test_bytes_of_a_user_with_many_processes(budget):
    for pid in (1, 2, 3):
        with budget.on_behalf(user=1000, process=pid):
            budget.spend(50)
    with pytest.raises(OverBudgetError, match="user 1000"), budget.on_behalf(user=1000, process=4):
        budget.spend(1)
    with budget.on_behalf(user=1001, process=5):
        budget.spend(50)


def test_time_passes_for_every_open_account(budget, clock):
    with budget.on_behalf(process=1):
        clock.now += 6
        with budget.on_behalf(file="a"):
            clock.now += 4
            budget.spend()
        clock.now += 0.5
        with pytest.raises(OverBudgetError, match="process 1 used its 10 s of naming"):
            budget.spend()
    with budget.on_behalf(file="a"):
        budget.spend()


def test_time_that_is_not_theirs(budget, clock):
    with budget.on_behalf(process=1):
        clock.now += 60
        budget.forgive(60)
        budget.spend()


def test_accounts_are_full_again_after_a_while(budget, clock):
    for _ in range(3):
        with budget.on_behalf(process=1), pytest.raises(OverBudgetError):
            budget.spend(101)
        clock.now += 601
    with budget.on_behalf(process=1):
        budget.spend(100)


def test_a_stopped_budget_refuses_every_account(budget):
    with budget.on_behalf(process=1):
        budget.stop()
        with pytest.raises(OverBudgetError, match="interrupted") as caught:
            budget.spend()
    assert caught.value.kind == ""
    with pytest.raises(OverBudgetError, match="interrupted"), budget.on_behalf(run=0):
        pytest.fail("nothing more is named")


def test_the_first_few_are_remembered(budget):
    for pid in range(9):
        with budget.on_behalf(process=pid), pytest.raises(OverBudgetError):
            budget.spend(101)
    assert budget.exceeded == [f"process {pid} used its 0 MiB of naming" for pid in range(3)]


def test_defaults_grow_from_file_to_run():
    budget = Budget()
    with budget.on_behalf(run=0, user=0, process=1, file="f"):
        budget.spend(700 << 20)
        with pytest.raises(OverBudgetError) as caught:
            budget.spend(700 << 20)
    assert caught.value.kind == FILE
    assert RUN not in str(caught.value)


def test_accounts_of_processes_that_ended_do_not_pile_up():
    """A build starts tens of thousands within a period; what is used up stays used up."""
    budget = Budget({PROCESS: Allowance(100, 10.0)})
    with budget.on_behalf(process=0, user=1000), pytest.raises(OverBudgetError):
        budget.spend(101)
    for pid in range(1, 20_000):
        with budget.on_behalf(process=pid, user=1000):
            budget.spend(1)
    assert len(budget._accounts) <= 4096
    with pytest.raises(OverBudgetError), budget.on_behalf(process=0, user=1000):
        pass
    assert budget._accounts[USER, 1000].nbytes == 101 + 19_999


def test_between_windows_processes_are_forgotten_that_used_next_to_nothing(budget):
    for process, nbytes in (1, 90), (2, 1), (3, 0):
        with budget.on_behalf(process=process, user=1000):
            budget.spend(nbytes)
    budget.rest()
    assert {name for _, name in budget._accounts} == {1, 1000}
    with pytest.raises(OverBudgetError), budget.on_behalf(process=1):
        budget.spend(11)
    with budget.on_behalf(process=2):
        budget.spend(100)
