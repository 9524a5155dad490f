"""Whose question is next, where many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from purebpf.services.fleet.web import turns
from purebpf.services.fleet.web.turns import BusyError, Turns


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def ask(
    at: Turns, reader: str, name: str, served: list[str], question: str = ""
) -> asyncio.Task[None]:
    async def take() -> None:
        await at.take(reader, question)
        served.append(name)

    return asyncio.ensure_future(take())


def run(test: Coroutine[None, None, None]) -> None:
    asyncio.run(test)


def test_a_new_question_waits_for_a_few_of_many_that_ask_again() -> None:
    async def main() -> None:
        now = 0.0
        at, served = Turns(lambda: now), list[str]()
        asked = [ask(at, "bob", f"bob {number}", served) for number in range(600)]
        await settle()
        now = 10.0
        for number in range(20):
            asked.append(ask(at, "bob", f"again {number}", served))  # before the next turn
            if number == 9:
                asked.append(ask(at, "bob", "new", served))
            await settle()
            at.give()
            await settle()
            now += 0.3
        assert served.index("new") - served.index("again 9") == 1
        assert len(served) - served.index("new") > 7
        for task in asked:
            task.cancel()

    run(main())


def test_a_question_among_hundreds_that_are_the_same_is_answered() -> None:
    async def main() -> None:
        now = 0.0
        at, served = Turns(lambda: now), list[str]()
        asked = []
        for number in range(600):
            name = "new" if number == 300 else f"bob {number}"
            asked.append(ask(at, "bob", name, served, "new" if name == "new" else f"{number % 5}"))
        await settle()
        now = 3.0
        for _ in range(3):
            at.give()
            await settle()
        assert "new" in served
        for task in asked:
            task.cancel()

    run(main())


def test_all_are_answered_when_nobody_asks_anew() -> None:
    async def main() -> None:
        now = 0.0
        at, served = Turns(lambda: now), list[str]()
        asked = [ask(at, "bob", str(number), served) for number in range(6)]
        await settle()
        now = 10.0
        for _ in asked:
            at.give()
            await settle()
        assert served == ["0", "4", "5", "3", "2", "1"]
        await asyncio.gather(*asked)

    run(main())


def test_readers_take_turns() -> None:
    async def main() -> None:
        at, served = Turns(), list[str]()
        asked = [ask(at, "bob", "bob", served) for _ in range(600)]
        await settle()
        asked += [ask(at, name, name, served) for name in ("ann", "eve", "ann")]
        await settle()
        for _ in range(6):
            at.give()
            await settle()
        assert served == ["bob", "ann", "eve", "bob", "ann", "bob", "bob"]
        for task in asked:
            task.cancel()

    run(main())


def test_readers_who_ask_again_before_their_turn_do_not_pass_others() -> None:
    async def main() -> None:
        at, served = Turns(), list[str]()
        asked = [ask(at, name, name, served) for name in ("ann", "bob", "eve", "bob", "eve")]
        await settle()
        for _ in range(9):
            at.give()
            await settle()
            asked.append(ask(at, served[-1], served[-1], served))
            await settle()
        counts = [served.count(name) for name in ("bob", "eve")]
        assert counts == [5, 4]
        for task in asked:
            task.cancel()

    run(main())


def test_a_reader_who_leaves_gives_up_the_place_or_the_turn() -> None:
    async def main() -> None:
        at, served = Turns(), list[str]()
        first = ask(at, "bob", "first", served)
        waits, leaves = ask(at, "bob", "waits", served), ask(at, "eve", "leaves", served)
        await settle()
        leaves.cancel()
        await settle()
        at.give()
        await settle()
        assert served == ["first", "waits"]
        late = ask(at, "eve", "late", served)
        await settle()
        at.give()
        late.cancel()  # in the moment in which it gets the turn
        await settle()
        last = ask(at, "ann", "last", served)
        await settle()
        assert served == ["first", "waits", "last"]
        await asyncio.gather(first, waits, last)

    run(main())


def test_the_oldest_of_too_many_questions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MOST_WAITING", 3)

    async def main() -> None:
        at, served = Turns(), list[str]()
        asked = [ask(at, "bob", str(number), served) for number in range(5)]
        asked.append(ask(at, "ann", "ann", served))
        await settle()
        refused = [number for number, task in enumerate(asked) if task.done() and number]
        assert refused == [1, 2]
        for number in refused:
            assert isinstance(asked[number].exception(), BusyError)
        for _ in range(3):
            at.give()
            await settle()
        assert sorted(served) == ["0", "3", "4", "ann"]

    run(main())
