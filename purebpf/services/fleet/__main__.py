"""`purebpf fleet`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.services.fleet.options import Parsed, build_parser, parse

if TYPE_CHECKING:
    from purebpf.services.fleet.answers import Question
    from purebpf.services.fleet.coverage import Coverage

__all__ = ["build_parser", "main"]

NAME = "purebpf fleet"
_DOWNLOAD_S = 3600
_EXTRAS = dict.fromkeys(
    ("duckdb", "pyarrow", "starlette", "uvicorn", "google.protobuf", "opentelemetry"), "fleet"
) | {
    "chdb": "clickhouse",
    "pyspark": "spark",
    "sqlglot": "clickhouse,spark",
    "obstore": "bucket",
    "fsspec": "bucket",
}


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(parsed: Parsed) -> int:
    actions: Mapping[str, Callable[[Parsed], int]] = {
        "hub": _hub,
        "serve": _serve,
        "import": _import,
        "compact": _compact,
        "prune": _prune,
        "check": _check,
        "symbolize": _symbolize,
    }
    try:
        return actions.get(parsed.options.action, _ask)(parsed)
    except ModuleNotFoundError as error:
        extra = next((x for name, x in _EXTRAS.items() if (error.name or "").startswith(name)), "")
        if not extra:
            raise
        command.note(f"{NAME}: {error.name} is not installed: pip install 'purebpf[{extra}]'")
        return command.FAILED


# The store


def _hub(parsed: Parsed) -> int:
    import gc

    from purebpf.services.fleet.serving import serve_hub

    gc.enable()  # it runs for days
    serve_hub(parsed.options, command.say)
    return 0


def _serve(parsed: Parsed) -> int:
    import gc

    from purebpf.services.fleet.serving import serve_pages

    gc.enable()  # it runs for days
    serve_pages(parsed.options, command.say)
    return 0


def _import(parsed: Parsed) -> int:
    from purebpf.services.fleet.importing import import_files
    from purebpf.services.fleet.stores.opening import open_store

    options = parsed.options
    of = dict(options.query.where)
    windows, rows = import_files(
        open_store(options.store),
        options.words,
        service=of.get("service", ""),
        host=of.get("host", ""),
    )
    command.say(f"{windows} windows stored, {rows} rows")
    return 0


def _compact(parsed: Parsed) -> int:
    from purebpf.services.fleet.compaction import Compacted, compact
    from purebpf.services.fleet.stores.opening import open_store

    def say(made: Compacted) -> None:
        size = f", {made.nbytes / made.rows:.2f} bytes a row" if made.rows else ""
        command.say(f"{made.hour}: {made.batches} batches, {made.rows} rows{size}")

    done = compact(open_store(parsed.options.store), now_s=time.time(), say=say)
    if not done:
        command.say("nothing to compact: hours are compacted ten minutes after their end")
    return 0


def _prune(parsed: Parsed) -> int:
    from purebpf.services.fleet.keeping import prune
    from purebpf.services.fleet.stores.opening import open_store

    keep_days = parsed.options.keep_days or 0
    gone = prune(open_store(parsed.options.store), keep_days, time.time())
    command.say(f"removed {len(gone)} days" + (f": {gone[0]} to {gone[-1]}" if gone else ""))
    return 0


def _check(parsed: Parsed) -> int:
    from purebpf.services.fleet.keeping import check
    from purebpf.services.fleet.stores.opening import open_store

    problems = 0
    for problem in check(open_store(parsed.options.store), time.time()):
        command.say(problem)
        problems += 1
    _print([f"{problems} problems\n" if problems else "every file is there, and the sums agree\n"])
    return command.FAILED if problems else 0


def _symbolize(parsed: Parsed) -> int:
    from purebpf.cli.source_info import NoServersError
    from purebpf.observe.symbols.debuginfod import Debuginfod, servers
    from purebpf.services.fleet import session
    from purebpf.services.fleet.stores.opening import open_store
    from purebpf.services.fleet.symbolize import symbolize

    urls = servers()
    if not urls:
        raise NoServersError(
            "DEBUGINFOD_URLS does not name an http server. Set it, for example to "
            "https://debuginfod.debian.net"
        )
    files = Debuginfod(urls, _DOWNLOAD_S)
    selection = session.select(parsed.options.query)
    store = open_store(parsed.options.store)
    done = symbolize(store, selection.since_us, selection.until_us, files)
    for problem in files.problems:
        command.note(f"{NAME}: {problem}")
    command.say(
        f"{done.named} of {done.places} places without a name have one now; "
        f"of {done.builds} builds {done.unknown} are not known to the servers"
    )
    return command.FAILED if files.problems else 0


# Questions


def _ask(parsed: Parsed) -> int:
    from purebpf.services.fleet import session

    options = parsed.options
    if options.action == "diff":
        return _compare(parsed)
    if options.action == "regressions":
        return _regress(parsed)
    with session.ask(options) as question:
        _say_left_out(question)
        if options.action == "sql":
            _print(session.statement_lines(question, options))
            return 0
        coverage = question.coverage()
        if options.action == "flamegraph":
            from purebpf.cli.destination import ResultOptions, write
            from purebpf.services.fleet.profiles import profile_of

            write(
                profile_of(question.selection, question.stacks(), coverage),
                ResultOptions(parsed.to),
            )
        else:
            _print(session.answer_lines(question, options, coverage))
    return _end(parsed, coverage)


def _compare(parsed: Parsed) -> int:
    from purebpf.cli.destination import writing
    from purebpf.cli.output import Output
    from purebpf.results.formats import html
    from purebpf.results.shape import diff
    from purebpf.services.fleet import session
    from purebpf.services.fleet.profiles import profile_of

    options = parsed.options
    sides = []
    for side in options.sides:
        with session.ask(options, side) as question:
            _say_left_out(question)
            coverage = question.coverage()
            sides.append(profile_of(question.selection, question.stacks(), coverage))
            command.say(coverage.text())
    names = [",".join("=".join(pair) for pair in side) for side in options.sides]
    before, after = sides
    difference = diff.compare(before, after, " -> ".join(names))
    for to in parsed.to:
        lines: Iterable[str] = diff.text(difference, top=options.rows)
        if to.format == "html":
            lines = [html.comparison(before, after, difference.title)]
        elif to.format == "json":
            lines = [diff.document(difference)]
        with Output(to.path) as output, writing(to):
            output.write(lines)
    if options.fail_over is not None and difference.worst > options.fail_over:
        command.note(f"{NAME}: a function grew by {difference.worst:.2f} percentage points")
        return command.LOSS
    return 0


def _regress(parsed: Parsed) -> int:
    from purebpf.services.fleet import render, session
    from purebpf.services.fleet.regressions import compare

    options = parsed.options
    a, b = options.sides
    with session.ask(options, a) as before, session.ask(options, b, before) as after:
        comparison = compare(before, after)
        _print(render.render_changes(comparison, options.rows))
        for side in (before, after):
            command.say(side.coverage().text())
    if options.fail_over is not None and 100 * comparison.worst > options.fail_over:
        command.note(f"{NAME}: a function grew by {100 * comparison.worst:.2f} points at least")
        return command.LOSS
    return 0


def _say_left_out(question: Question) -> None:
    hours = question.left_out
    if hours:
        command.note(
            f"{NAME}: of {len(hours)} hours, {hours[0]} to {hours[-1]}, what was not compacted yet "
            "is left out: `purebpf fleet compact`"
        )


def _end(parsed: Parsed, coverage: Coverage) -> int:
    command.say(coverage.text())
    return command.LOSS if parsed.strict and not coverage.is_whole else 0


def _print(lines: Iterable[str]) -> None:
    from purebpf.cli.output import Output

    with Output() as output:
        output.write(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
