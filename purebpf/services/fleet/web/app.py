"""The pages of a store: a range as time line and tables, its flame graph, and changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from purebpf.errors import PurebpfError
from purebpf.results.formats import html, json, pprof
from purebpf.services.fleet.cut import cut
from purebpf.services.fleet.profiles import describe, profile_of
from purebpf.services.fleet.regressions import ComparisonError, compare
from purebpf.services.fleet.selection import Selection, SelectionError
from purebpf.services.fleet.session import select
from purebpf.services.fleet.steps import steps_of
from purebpf.services.fleet.web import layout, tables
from purebpf.services.fleet.web.fields import Asked, earlier
from purebpf.services.fleet.web.question_pool import QuestionPool
from purebpf.services.fleet.web.timeline import MOST_STEPS, timeline
from purebpf.services.fleet.web.turns import BusyError
from purebpf.services.fleet.web.worker import Worker

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from purebpf.results import Profile
    from purebpf.services.fleet.web.access import Access

__all__ = ["fleet_app"]

_Answer = TypeVar("_Answer")
_ROWS = 30
_MOST_STACKS = 50_000
"""Of an answer, the heaviest ones: 15 MB. The rest keeps its weight."""
_FILES: dict[str, tuple[str, Callable[[Profile], str | bytes]]] = {
    "/flamegraph": ("text/html", html.page),
    "/flamegraph.json": ("application/json", json.document),
    "/flamegraph.pb.gz": ("application/gzip", pprof.document),
}


def fleet_app(pool: QuestionPool, access: Access) -> Starlette:
    """The application, for a server of ASGI."""

    async def overview(request: Request) -> Response:
        return _stream(_overview, pool, request, access.reader_of(request))

    async def regressions(request: Request) -> Response:
        return _stream(_regressions, pool, request, access.reader_of(request))

    async def flamegraph(request: Request) -> Response:
        media_type, spell = _FILES[request.url.path]

        def make(worker: Worker, selection: Selection, asked: Asked) -> str | bytes:
            profile = _profile(worker, selection, asked)
            worker.check()
            return spell(profile)

        return await _whole(pool, request, access.reader_of(request), make, media_type)

    async def diff(request: Request) -> Response:
        reader = access.reader_of(request)
        return await _whole(pool, request, reader, _comparison, "text/html")

    routes = [
        Route("/", overview),
        Route("/regressions", regressions),
        Route("/diff", diff),
        *(Route(path, flamegraph) for path in _FILES),
        Route("/enter", access.enter, methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(_Guard, access=access)])


class _Guard:
    """Lets in only who has a token."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request

        if scope["type"] == "http" and scope["path"] != "/enter":
            refusal = self._access.refuse(Request(scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _whole(
    pool: QuestionPool,
    request: Request,
    reader: Hashable,
    make: Callable[[Worker, Selection, Asked], str | bytes],
    media_type: str,
) -> Response:
    """A page or file that comes in one piece."""
    try:
        asked = Asked.of(request.query_params)
        selection = select(asked.query())
        made = await _while_connected(
            request,
            pool.answer(
                lambda worker: make(worker, selection, asked),
                reader,
                _question(request),
                selection.breadth,
            ),
        )
    except SelectionError as error:
        return layout.message_page(layout.problem(str(error)), HTTPStatus.BAD_REQUEST)
    except BusyError as error:
        return layout.message_page(layout.problem(str(error)), HTTPStatus.SERVICE_UNAVAILABLE)
    except PurebpfError as error:
        return layout.message_page(layout.problem(str(error)), HTTPStatus.UNPROCESSABLE_ENTITY)
    body = made.encode("utf-8", "backslashreplace") if isinstance(made, str) else made
    return Response(body, media_type=media_type, headers=layout.HEADERS)


async def _while_connected(request: Request, answer: Coroutine[Any, Any, _Answer]) -> _Answer:
    """An answer; it is cancelled when its reader goes away.

    Raises:
        BusyError: the reader went away.
    """
    task = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise BusyError("the reader went away")
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()


def _question(request: Request) -> int:
    """The name of a question, whoever asks it."""
    return hash((request.url.path, request.url.query))


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _stream(
    parts: Callable[[Worker, Asked, Selection], Iterator[str]],
    pool: QuestionPool,
    request: Request,
    reader: Hashable,
) -> Response:
    """A page that comes part by part, as its answers do."""
    try:
        asked = Asked.of(request.query_params)
        selection = select(asked.query())
    except SelectionError as error:
        return layout.message_page(
            layout.problem(str(error)) + '<p><a href="/">Ask anew</a></p>', HTTPStatus.BAD_REQUEST
        )

    async def pieces() -> AsyncIterator[bytes]:
        yield layout.begin(_title(selection), asked, request.url.path).encode()
        try:
            async for part in pool.stream(
                lambda worker: parts(worker, asked, selection),
                reader,
                _question(request),
                selection.breadth,
            ):
                yield part.encode("utf-8", "backslashreplace")
        except PurebpfError as error:
            yield layout.problem(str(error)).encode("utf-8", "backslashreplace")
        yield layout.END.encode()

    return StreamingResponse(pieces(), media_type="text/html", headers=layout.HEADERS)


def _title(selection: Selection) -> str:
    return ", ".join(f"{name} {value}" for name, value in selection.where) or "all services"


# What the pages show


def _overview(worker: Worker, asked: Asked, selection: Selection) -> Iterator[str]:
    steps = steps_of(selection, MOST_STEPS)
    range_us = selection.until_us - selection.since_us
    question = worker.ask(selection, by_host=not steps.are_hours)
    moments = question.timeline(steps.length_us)
    names = sorted({moment.service for moment in moments} - {""})
    yield (
        timeline(moments, steps, asked)
        + layout.choices("service", names)
        + layout.choices("build", question.values_of("version", 50))
    )
    yield _links(asked) + '<div class="columns"><div>'
    yield tables.functions_table(worker.ask(selection).functions(_ROWS), range_us) + "</div><div>"
    question = worker.ask(selection, by_host=True)
    hosts = question.hosts()
    yield (
        tables.hosts_table(hosts, range_us, asked, _ROWS)
        + layout.choices("host", [host.host for host in hosts[:1000]])
        + tables.coverage_line(question.coverage())
    )
    yield "</div></div>" + layout.script()


def _links(asked: Asked) -> str:
    links = [
        ("flame graph", "/flamegraph"),
        ("what changed", "/regressions"),
        ("flame graph of what changed", "/diff"),
        ("pprof", "/flamegraph.pb.gz"),
        ("JSON", "/flamegraph.json"),
    ]
    return "<nav>{}</nav>".format(
        "".join(
            f'<a class="button" href="{escape(asked.address(path))}">{shown}</a>'
            for shown, path in links
        )
    )


def _regressions(worker: Worker, asked: Asked, selection: Selection) -> Iterator[str]:
    link = escape(asked.address("/diff"))
    yield f'<nav><a class="button" href="{link}">as a flame graph</a></nav>'
    sides = [worker.ask(side, by_host=True) for side in (earlier(selection, asked), selection)]
    coverages = [side.coverage() for side in sides]
    titles = [
        describe(side.selection, coverage) for side, coverage in zip(sides, coverages, strict=True)
    ]
    comparison = compare(*sides)
    yield (
        f"<p>{' <b>and then</b> '.join(map(layout.text, titles))}</p>"
        + tables.changes_tables(comparison, _ROWS)
        + "".join(map(tables.coverage_line, coverages))
    )


def _profile(worker: Worker, selection: Selection, _asked: Asked) -> Profile:
    question = worker.ask(selection)
    (stacks,) = cut(question.heaviest(_MOST_STACKS, worker.check), check=worker.check)
    worker.check()
    return _dated(profile_of(selection, question.named(stacks), question.coverage()), selection)


def _comparison(worker: Worker, selection: Selection, asked: Asked) -> str:
    questions = [worker.ask(side) for side in (earlier(selection, asked), selection)]
    sides = cut(
        *(question.heaviest(_MOST_STACKS, worker.check) for question in questions),
        check=worker.check,
    )
    worker.check()
    for name, side in zip(("before", "after"), sides, strict=True):
        if not side:
            raise ComparisonError(f"there are no samples {name}: nothing to compare")
    before, after = (
        _dated(
            profile_of(question.selection, question.named(stacks), question.coverage()),
            question.selection,
        )
        for question, stacks in zip(questions, sides, strict=True)
    )
    return html.comparison(before, after, f"{before.title} -> {after.title}")


def _dated(profile: Profile, selection: Selection) -> Profile:
    """With the times that a page's head shows."""
    profile.about.update(
        started_s=selection.since_us / 1e6,
        elapsed_s=(min(selection.until_us, time.time() * 1e6) - selection.since_us) / 1e6,
    )
    return profile
