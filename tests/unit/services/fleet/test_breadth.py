"""Questions that ask for much let those pass that ask for little."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.web.question_pool import QuestionPool
from purebpf.services.fleet.web.turns import Turns
from purebpf.services.fleet.web.worker import Worker

HOUR_US = 3_600_000_000
ENDLESS = "select count(*) from range(100000000) a, range(1000000) b where a.range < b.range"


def test_two_minutes_of_a_service_are_much_less_than_an_hour() -> None:
    hour = Selection(0, HOUR_US)
    minutes = Selection(0, HOUR_US // 30, "cpu", (("service", "one"),))
    assert hour.breadth == 3600
    assert minutes.breadth == 15


def test_a_narrow_question_of_a_reader_goes_before_the_wide_ones() -> None:
    async def main() -> list[str]:
        turns, served = Turns(), list[str]()

        async def take(name: str, breadth: float) -> None:
            await turns.take("bob", name, breadth)
            served.append(name)
            turns.give()

        await turns.take("bob")
        asked = [take("wide", 3600), take("also wide", 1000), take("narrow", 15), take("nar", 15)]
        tasks = [asyncio.ensure_future(one) for one in asked]
        await asyncio.sleep(0)
        turns.give()
        await asyncio.gather(*tasks)
        return served

    assert asyncio.run(main()) == ["narrow", "nar", "wide", "also wide"]


async def until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


def test_a_wide_question_waits_for_a_narrow_one_once(tmp_path: Path) -> None:
    """It begins again in its own lane, and is answered there."""
    (tmp_path / "landing").mkdir()
    begun: list[str] = []

    def endless(worker: Worker) -> object:
        question = worker.ask(Selection(0, HOUR_US))
        begun.append("slow")
        return question.ask(ENDLESS)

    def wide(worker: Worker) -> str:
        question = worker.ask(Selection(0, HOUR_US))
        begun.append("wide")
        if begun.count("wide") == 1:
            question.ask(ENDLESS)
        return "answered"

    async def ask() -> list[str]:
        pool = QuestionPool(Directory(str(tmp_path)))
        slow = asyncio.ensure_future(pool.answer(endless, "ann", "slow", 3600))
        await until(lambda: pool._slow.turns._is_taken)
        asked = asyncio.ensure_future(pool.answer(wide, "ann", "wide", 3600))
        await until(lambda: begun[-1] == "wide")
        narrow = asyncio.ensure_future(pool.answer(lambda _: "narrow", "ann", "narrow", 15))
        answers = [await narrow, await asked]
        assert not pool._is_slow("wide")
        assert not slow.done()
        pool.end()
        await asyncio.gather(slow, return_exceptions=True)
        return answers

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == ["narrow", "answered"]
    assert begun == ["slow", "wide", "wide"]
