"""More about a saved profile than it says: lines, names of `--debuginfod`, and other events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.errors import PurebpfError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from purebpf.observe.symbols.debuginfod import Debuginfod
    from purebpf.results import Profile
    from purebpf.symbols.budget import Budget

__all__ = ["add_lines", "debuginfod", "say_left_out", "say_problems"]

_TIMEOUT_S = 60.0
_NO_TOOL = (
    "--lines needs llvm-symbolizer or addr2line (Debian: llvm or binutils), and neither was "
    "found: names are shown without lines"
)
_SHOWN = 3


class NoServersError(PurebpfError):
    """There is no server to ask."""

    exit_status = 2


def debuginfod(*, wanted: bool) -> Debuginfod | None:
    """Return a function that fetches debug files from the user's servers, if the option is set.

    Raises:
        NoServersError: there are none.
    """
    if not wanted:
        return None
    from purebpf.observe.symbols.debuginfod import Debuginfod, servers

    urls = servers()
    if not urls:
        raise NoServersError(
            "--debuginfod: DEBUGINFOD_URLS does not name an http server. Set it, for example to "
            "https://debuginfod.debian.net (sudo drops it: sudo DEBUGINFOD_URLS=... COMMAND)"
        )
    return Debuginfod(urls)


def add_lines(
    profile: Profile,
    *,
    lines: bool,
    fetch: Debuginfod | None = None,
    by_build_id: bool = False,
    budget: Budget | None = None,
) -> Profile:
    """Return the profile with lines if requested, as far as they are available.

    `by_build_id`: only for files with a build id, as others here need not be the ones that ran.

    It reports missing lines, and errors of the servers. Ctrl-C ends it, as it stops the `budget` of
    the names; it may have ended with them before.
    """
    if lines:
        from purebpf.observe.symbols.interruptible import interruptible
        from purebpf.symbols.budget import Budget

        budget = Budget() if budget is None else budget
        with interruptible(budget):
            profile = _add_lines(profile, fetch, budget, by_build_id=by_build_id)
    say_problems(fetch)
    return profile


def say_problems(fetch: Debuginfod | None) -> None:
    """Report the errors of the servers."""
    for problem in fetch.problems if fetch else ():
        command.note(f"debuginfod: {problem}")


def _add_lines(
    profile: Profile, fetch: Debuginfod | None, budget: Budget, *, by_build_id: bool
) -> Profile:
    from purebpf.cli.progress import doing
    from purebpf.observe.symbols.source_lines import SourceLines, find_tool
    from purebpf.results.shape.lines import wanted, with_lines

    tool = find_tool()
    if tool is None:
        command.note(_NO_TOOL)
        return profile
    source = SourceLines(tool, _TIMEOUT_S, fetch, lambda: budget.is_stopped)
    with doing("looking up lines"):
        answers = {
            module: source.of(*module, asked.places, tuple(asked.pids))
            for module, asked in wanted(profile).items()
            if module.build_id or not by_build_id
        }
        with_source = with_lines(profile, answers)
    _tell(source.without, "without line information:")
    _tell(source.gone, "deleted or replaced:")
    too_short = "interrupted before all of" if budget.is_stopped else "not enough time for all of"
    _tell(source.unfinished, too_short)
    if source.problem:
        command.note(f"lines: {source.problem}")
    return with_source


def _tell(paths: Sequence[str], what: str) -> None:
    if paths:
        from purebpf.results.model.spelling import printable

        names = ", ".join(printable(path.rpartition("/")[2]) for path in paths[:_SHOWN])
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        command.note(f"lines: {what} {names}{more}")


def say_left_out(profile: Profile, path: str) -> None:
    """Say on standard error which samples of a file are not in its profile.

    A profile has one event, and its file may say that samples were lost.
    """
    others = profile.about.get("other_events")
    for other in others if isinstance(others, list) else ():
        command.say(f"also in {path}, not shown: {other}")
    for cause in profile.loss.causes:
        if cause.lost and not cause.is_note:
            command.say(f"lost in {path}: {cause.what}")
