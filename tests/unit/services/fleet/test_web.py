"""The pages' parts: addresses, what is cut, columns, who may read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.applications import Starlette

from purebpf.services.fleet import cut as cutting
from purebpf.services.fleet.answers import FramePlace, Function, Functions, Host, Moment, Numbered
from purebpf.services.fleet.coverage import Coverage
from purebpf.services.fleet.cut import cut
from purebpf.services.fleet.selection import Selection, SelectionError, parse_range
from purebpf.services.fleet.steps import Steps, steps_of
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.web import tables, turns
from purebpf.services.fleet.web.access import Access
from purebpf.services.fleet.web.app import fleet_app
from purebpf.services.fleet.web.fields import Asked, earlier
from purebpf.services.fleet.web.question_pool import QuestionPool
from purebpf.services.fleet.web.timeline import timeline
from purebpf.services.fleet.web.turns import BusyError
from purebpf.services.fleet.web.worker import Worker

HOUR_US = 3_600_000_000
MARKUP = "<script>alert(1)</script>\x1b[31m"


def place(name: str) -> FramePlace:
    return FramePlace(name, "lib.so", "user", "", -1)


# Addresses


def test_an_address_brings_back_the_question() -> None:
    asked = Asked(since="2h", service="a&b=c", label="unit=x.service", against="build", than="ab")
    given = dict(parse_qsl(urlsplit(asked.address("/diff")).query))
    assert Asked.of(given) == asked
    assert Asked().address("/") == "/"
    assert asked.query().where == (("service", "a&b=c"), ("unit", "x.service"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"service": "x" * 201}, "201 characters"),
        ({"against": "tomorrow"}, "no comparison with 'tomorrow'"),
        ({"label": "unit"}, "not NAME=VALUE"),
    ],
)
def test_a_wrong_address_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(SelectionError, match=words):
        Asked.of(given).query()


def test_the_side_before() -> None:
    chosen = Selection(10 * HOUR_US, 12 * HOUR_US, "cpu", (("version", "new"), ("host", "h")))
    assert earlier(chosen, Asked())[:2] == (8 * HOUR_US, 10 * HOUR_US)
    assert earlier(chosen, Asked(against="day"))[:2] == (-14 * HOUR_US, -12 * HOUR_US)
    other = earlier(chosen, Asked(against="build", than="old"))
    assert other.where == (("host", "h"), ("version", "old"))
    assert other[:2] == chosen[:2]
    with pytest.raises(SelectionError, match="which build"):
        earlier(chosen, Asked(against="build"))


# Columns


@pytest.mark.parametrize(
    ("hours", "length_us", "number"),
    [(1, HOUR_US // 60, 60), (6, HOUR_US // 20, 120), (24, HOUR_US, 24), (168, 2 * HOUR_US, 84)],
)  # fmt: skip
def test_columns_are_minutes_or_hours(hours: int, length_us: int, number: int) -> None:
    steps = steps_of(Selection(240 * HOUR_US, (240 + hours) * HOUR_US), 120)
    assert steps == Steps(240 * HOUR_US, length_us, number)
    assert steps.are_hours == (hours >= 12)
    assert steps.column(240 * HOUR_US - 1) == 0
    assert steps.column(9999 * HOUR_US) == number - 1


# What is cut


def test_few_stacks_stay_as_they_are() -> None:
    side = [Numbered("s", (place("leaf"), place("main")), 1)]
    assert cut(side) == [side]


def test_what_is_small_on_both_sides_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_MANY", 2)
    main = place("main")
    before = [
        Numbered("s", (place("large"), main), 100_000),
        *(Numbered("s", (place(f"small{number}"), main), 1) for number in range(9)),
        Numbered("s", (place("grew"), main), 1),
    ]
    after = [Numbered("s", (place("large"), main), 900), Numbered("s", (place("grew"), main), 100)]
    first, second = cut(before, after)
    assert sum(each.value for each in first) == sum(each.value for each in before)
    rests = [each for each in first if each.frames[0].function == "[less than 0.05 %]"]
    assert [(each.value, each.frames[1:]) for each in rests] == [(9, (main,))]
    assert {each.frames[0].function for each in first} >= {"large", "grew"}
    assert second == after


# Names are text


def test_names_of_others_are_text() -> None:
    steps = Steps(0, HOUR_US, 2)
    made = [
        timeline([Moment(0, MARKUP, 5), Moment(0, "", 5)], steps, Asked(service=MARKUP)),
        tables.functions_table(Functions([Function(place(MARKUP), 1, 1)], 1, 1), 1),
        tables.hosts_table([Host(MARKUP, 1, 0, 1, 0, 0)], 1, Asked(), 5),
        tables.coverage_line(Coverage(1, 1, 1, lost=((MARKUP, 1),))),
    ]
    for page in made:
        assert "<script" not in page
        assert "\x1b" not in page
        assert "script" in page


# The pool


def test_a_question_that_takes_too_long_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purebpf.services.fleet.web.question_pool._PATIENCE_S", 0.3)
    (tmp_path / "landing").mkdir()

    def work(worker: Worker) -> object:
        question = worker.ask(Selection(0, HOUR_US))
        return question.ask("select count(*) from range(1000000) a, range(1000000) b where a != b")

    with pytest.raises(BusyError, match="shorter range"):
        asyncio.run(QuestionPool(Directory(str(tmp_path))).answer(work))


def test_a_question_that_begins_when_its_time_is_over_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purebpf.services.fleet.web.question_pool._PATIENCE_S", 2)
    (tmp_path / "landing").mkdir()
    rescues: list[Worker] = []

    def rescue(worker: Worker) -> None:
        rescues.append(worker)
        worker.give_up()

    def work(worker: Worker) -> object:
        question = worker.ask(Selection(0, HOUR_US))
        while not worker.gave_up:
            time.sleep(0.01)
        time.sleep(0.01)
        timer = threading.Timer(20, rescue, (worker,))
        timer.start()
        try:
            return question.ask(
                "select count(*) from range(1000000) a, range(1000000) b where a != b"
            )
        finally:
            timer.cancel()

    with pytest.raises(BusyError, match="shorter range"):
        asyncio.run(QuestionPool(Directory(str(tmp_path))).answer(work))
    assert not rescues


ENDLESS = "select count(*) from range(1000000) a, range(1000000) b where a != b"


def test_a_server_that_ends_waits_for_no_question(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    has_begun = threading.Event()

    def work(worker: Worker) -> object:
        question = worker.ask(Selection(0, HOUR_US))
        has_begun.set()
        return question.ask(ENDLESS)

    async def ask() -> list[object]:
        pool = QuestionPool(Directory(str(tmp_path)))
        asked = [asyncio.ensure_future(pool.answer(work)) for _ in range(3)]
        await asyncio.to_thread(has_begun.wait)
        pool.end()
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(ask())] == [BusyError] * 3


def test_a_question_whose_asker_left_ends_before_the_next_begins(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    under_way: list[str] = []
    has_begun = threading.Event()

    def work(worker: Worker) -> object:
        under_way.append("begins")
        has_begun.set()
        try:
            return worker.ask(Selection(0, HOUR_US)).ask(ENDLESS)
        finally:
            under_way.append("ends")

    async def ask() -> object:
        pool = QuestionPool(Directory(str(tmp_path)))
        first = asyncio.ensure_future(pool.answer(work))
        await asyncio.to_thread(has_begun.wait)
        first.cancel()
        return await pool.answer(lambda _: list(under_way))

    assert asyncio.run(ask()) == ["begins", "ends"]


def test_a_reader_who_leaves_ends_a_page_of_one_piece(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    access = Access(["secret"], port=1, is_secure=False)
    pool = QuestionPool(Directory(str(tmp_path)))
    sent: list[Any] = []

    async def ask() -> None:
        taken = asyncio.ensure_future(pool.answer(lambda _: time.sleep(0.5)))
        messages = [{"type": "http.disconnect"}, {"type": "http.request", "body": b""}]

        async def receive() -> dict[str, object]:
            return messages.pop()  # type: ignore[return-value]

        async def send(message: object) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "GET", "path": "/flamegraph", "query_string": b"",
            "headers": [(b"authorization", b"Bearer secret")], "scheme": "http",
            "server": ("127.0.0.1", 80), "root_path": "", "http_version": "1.1",
        }  # fmt: skip
        await fleet_app(pool, access)(scope, receive, send)  # type: ignore[arg-type]
        assert not taken.done()
        await taken

    asyncio.run(ask())
    assert sent[0]["status"] == 503


WRONG_TIMES = (
    *("99999999999999999d", "3000000d", "0001-01-01", "9" * 190 + "h", "1969-12-31T23:00"),
    *("9999-12-31T23:59:59", "1e9d", "0001-01-01T00:00+23:59"),
)


@pytest.mark.parametrize("since", WRONG_TIMES)
def test_times_that_no_store_has_are_refused(since: str) -> None:
    with pytest.raises(SelectionError):
        parse_range(since, "now", 1.8e9)
    with pytest.raises(SelectionError):
        parse_range("1h", since, 1.8e9)


async def until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


def test_a_question_is_answered_while_two_endless_ones_are(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    begun: list[str] = []

    def endless(name: str) -> Callable[[Worker], object]:
        def work(worker: Worker) -> object:
            question = worker.ask(Selection(0, HOUR_US))
            begun.append(name)
            return question.ask(ENDLESS)

        return work

    async def ask() -> list[str]:
        pool = QuestionPool(Directory(str(tmp_path)))
        asked = [asyncio.ensure_future(pool.answer(endless("first"), "eve", "first"))]
        await until(lambda: begun == ["first"])
        asked.append(asyncio.ensure_future(pool.answer(endless("second"), "eve", "second")))
        await until(lambda: begun == ["first", "second"])
        answers = [await pool.answer(lambda _: "one", "ann"), await pool.answer(lambda _: "two")]
        await asyncio.sleep(1)
        begun.append("asked again")
        asked.append(asyncio.ensure_future(pool.answer(endless("second"), "eve", "second")))
        answers.append(await pool.answer(lambda _: "three", "ann"))
        assert not any(task.done() for task in asked)
        pool.end()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in ended] == [BusyError] * 3
        return answers

    assert asyncio.run(ask()) == ["one", "two", "three"]
    assert begun == ["first", "second", "asked again"]  # that one waits in the slow lane


def test_of_many_that_ask_the_same_slow_question_one_takes_the_quick_lane(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    begun: list[str] = []

    def endless(worker: Worker) -> object:
        question = worker.ask(Selection(0, HOUR_US))
        begun.append("endless")
        return question.ask(ENDLESS)

    async def ask() -> str:
        pool = QuestionPool(Directory(str(tmp_path)))
        asked = [asyncio.ensure_future(pool.answer(endless, "eve", "same")) for _ in range(100)]
        await until(lambda: begun)
        answer = await pool.answer(lambda _: "quick", "eve", "new")
        assert len(begun) == 1
        pool.end()
        await asyncio.gather(*asked, return_exceptions=True)
        return answer

    assert asyncio.run(ask()) == "quick"


def test_a_page_that_moves_to_the_slow_lane_has_each_part_once(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    may_end, begun = threading.Event(), list[str]()

    def blocking(_: Worker) -> None:
        while not may_end.is_set():
            pass

    def parts(worker: Worker) -> Iterator[str]:
        begun.append("page")
        yield "one "
        yield "two " if len(begun) > 1 else str(worker.ask(Selection(0, HOUR_US)).ask(ENDLESS))
        yield "three"

    async def ask() -> str:
        pool = QuestionPool(Directory(str(tmp_path)))
        blocker = asyncio.ensure_future(pool.answer(blocking))
        await until(lambda: pool._slow.turns._is_taken)

        async def page() -> str:
            return "".join([part async for part in pool.stream(parts)])

        asked = asyncio.ensure_future(page())
        await until(lambda: begun)
        assert await pool.answer(lambda _: "quick", "ann") == "quick"
        may_end.set()
        await blocker
        return await asked

    assert asyncio.run(ask()) == "one two three"
    assert begun == ["page", "page"]


def test_an_answer_that_needs_more_memory_gets_it_in_the_slow_lane(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    begun: list[int] = []

    def work(worker: Worker) -> int:
        question = worker.ask(Selection(0, HOUR_US))
        begun.append(1)
        statement = "select list(range) from range(5000000)"
        return len(question.ask(f"select len(x) from ({statement}) t(x)"))

    answer = QuestionPool(Directory(str(tmp_path))).answer(work)
    assert asyncio.run(answer) == 1
    assert len(begun) == 2


def test_so_many_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MOST_WAITING", 15)
    may_end = threading.Event()

    async def ask() -> list[object]:
        pool = QuestionPool(Directory(str(tmp_path)))
        asked = [asyncio.ensure_future(pool.answer(lambda _: may_end.wait())) for _ in range(18)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        may_end.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(ask())
    assert sum(isinstance(one, BusyError) for one in answers) == 2
    assert sum(one is True for one in answers) == 16


# Who may read


def page(app: Starlette, path: str, method: str = "GET", body: bytes = b"", **headers: str):  # type: ignore[no-untyped-def]
    """Status, headers and body of an answer, without a server."""
    sent: list[dict[str, object]] = []
    where = urlsplit(path)
    scope = {
        "type": "http", "method": method, "path": where.path, "query_string": where.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 80), "scheme": "http", "root_path": "", "http_version": "1.1",
    }  # fmt: skip

    bodies = [body]

    async def receive() -> dict[str, object]:
        if not bodies:
            await asyncio.Event().wait()  # the reader stays
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    start = sent[0]
    text = b"".join(one.get("body", b"") for one in sent[1:])  # type: ignore[misc]
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, text.decode()  # type: ignore[attr-defined]


@pytest.fixture
def app(tmp_path: Path) -> Starlette:
    (tmp_path / "landing").mkdir()
    access = Access(["secret", "other"], port=1, is_secure=True)
    return fleet_app(QuestionPool(Directory(str(tmp_path))), access)


def test_without_a_token_there_is_nothing(app: Starlette) -> None:
    for path in ("/", "/flamegraph", "/diff", "/regressions", "/nowhere", "/?token=secre"):
        status, headers, body = page(app, path)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert "samples" not in body


def test_a_token_in_the_address_becomes_a_cookie(app: Starlette) -> None:
    status, headers, _ = page(app, "/flamegraph?since=2h&token=other")
    assert (status, headers["location"]) == (303, "/flamegraph?since=2h")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "Secure" in cookie
    assert "SameSite=lax" in cookie
    status, headers, body = page(app, "/", cookie=cookie.partition(";")[0])
    assert status == 200
    assert "No samples in this range" in body
    assert headers["cache-control"] == "private, no-store"


def test_a_token_in_a_header_or_the_form(app: Starlette) -> None:
    assert page(app, "/", authorization="Bearer secret")[0] == 200
    assert page(app, "/enter", "POST", b"token=secret")[0] == 303
    assert page(app, "/enter", "POST", b"token=wrong")[0] == 401
    assert page(app, "/enter", "POST", b"token=" + b"x" * 5000)[0] == 400


def test_a_redirect_stays_here(app: Starlette) -> None:
    _, headers, _ = page(app, "//elsewhere.example/?token=secret")
    assert headers["location"].startswith("/")
    assert not headers["location"].startswith("//")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?since=yesterday", 400),
        ("/flamegraph?since=2h&until=3h", 400),
        ("/flamegraph?kind=gpu", 400),
        ("/diff?against=build", 400),
        ("/diff", 422),  # both sides are empty
        ("/nowhere", 404),
    ],
)
def test_a_question_that_cannot_be_asked(app: Starlette, path: str, status: int) -> None:
    got, _, body = page(app, path, authorization="Bearer secret")
    assert got == status
    assert "Traceback" not in body


def test_what_fails_later_is_said_on_the_page(app: Starlette) -> None:
    status, _, body = page(app, "/regressions", authorization="Bearer secret")
    assert status == 200
    assert "no samples before" in body
    assert body.endswith("</html>\n")
