"""The places and formats of results: `--format` and `-o`, each as often as needed.

The first format goes to the first file and so on. Without `--format`, the name of a file says its
format.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from purebpf.cli.arguments import output, positive_int
from purebpf.errors import KernelError
from purebpf.formats import FORMATS, of_path
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.results import Profile

__all__ = [
    "Destination",
    "ResultOptions",
    "add_answer",
    "add_destinations",
    "add_folded",
    "add_json",
    "add_top",
    "destinations",
    "encode",
    "head",
    "raise_all",
    "say_written",
    "says_when",
    "wants_answer",
    "write",
    "writing",
]

_FOREIGN = ("svg", "png", "jpg", "jpeg", "gif", "pdf")
"""Kinds of pictures, which a text in the default format is not."""


class Destination(NamedTuple):
    """A format (a key of `purebpf.formats.FORMATS`), and a file; None is standard output."""

    format: str
    path: str | None


class ResultOptions(NamedTuple):
    """The options for the result of a profile. No measurement depends on it.

    `to` has the places and formats; `serve` the address (host and port) to listen at for browsers.
    `lines` and `debuginfod` request more about names, `strict` a separate exit status for losses,
    `verbose` every counter and whole names. The rest is layout: `all_stacks` and `layout` for a
    text, `top` limits the rows of a table, the others are in
    `purebpf.results.formats.writer.Style`.
    """

    to: tuple[Destination, ...] = (Destination("text", None),)
    serve: tuple[str, int] | None = None
    lines: bool = False
    debuginfod: bool = False
    strict: bool = False
    verbose: bool = False
    delimited: bool = False
    annotations: bool = False
    addresses: bool = False
    offsets: bool = False
    top: int | None = None
    all_stacks: bool = False
    layout: str = ""


def add_destinations(group: argparse._ArgumentGroup) -> None:
    """Options `formats` and `outputs`; `destinations` brings them together."""
    group.add_argument(
        *("-o", "--output"), dest="outputs", metavar="FILE", type=output, action="append",
        default=[],
        help="write to FILE, in the format of its name, when it is complete; repeatable; -: "
             "standard output",
    )  # fmt: skip
    group.add_argument(
        "--format", dest="formats", metavar="FORMAT", action="append", default=[],
        help=f"{', '.join(FORMATS)}; one for each -o",
    )  # fmt: skip
    add_json(group)


def add_json(group: argparse._ArgumentGroup) -> None:
    """Option --json, which is one of `formats`."""
    group.add_argument(
        *("--json",), dest="formats", action="append_const", const="json", default=[],
        help="same as --format json",
    )  # fmt: skip


def add_folded(group: argparse._ArgumentGroup) -> None:
    """Option -f, which is one of `formats`."""
    group.add_argument(
        *("-f", "--folded"), dest="formats", action="append_const", const="folded",
        default=[], help="same as --format folded",
    )  # fmt: skip


def add_top(
    group: argparse._ArgumentGroup, *letters: str, what: str = "functions and stacks"
) -> None:
    """Options `top` and `all_stacks`; `letters` are more spellings of the first."""
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        *("-n", "--top", *letters),
        metavar="N",
        type=positive_int,
        help=f"the first N {what} (text)",
    )
    either.add_argument(
        "--all", dest="all_stacks", action="store_true", help="every function and stack (text)"
    )


def add_answer(
    group: argparse._ArgumentGroup,
    *letters: str,
    other: str = "",
    what: str = "functions and stacks",
) -> None:
    """Options `top`, `all_stacks` and `layout`; `other` says which options ask for bcc's.

    `letters` and `what`: as in `add_top`.
    """
    default = f"answer; bcc with {other}" if other else "answer"
    add_top(group, *letters, what=what)
    group.add_argument(
        "--layout", choices=("answer", "bcc"), default="",
        help="of text: functions and the heaviest stacks, or each stack by address as bcc "
             f"prints it (default: {default})",
    )  # fmt: skip


def wants_answer(view: ResultOptions, format_name: str, *, details: bool) -> bool:
    """Return True if a text begins with the answer; `details`: an option needs the layout of
    bcc.
    """
    return format_name == "text" and view.layout != "bcc" and (bool(view.layout) or not details)


def head(title: str, view: ResultOptions, *, details: bool) -> str:
    """The title of a run, without the unit of bcc's layout where each number says its own."""
    if all(wants_answer(view, to.format, details=details) for to in view.to):
        return title.replace(" (us)", "")
    return title


def destinations(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    outputs: Sequence[str | None],
    *,
    default: str = "text",
) -> tuple[Destination, ...]:
    """One for each file, or the one of standard output; exits with status 2 if they do not fit.

    `default` is the format of standard output, and of a file with another name.
    """
    if not formats and not outputs:
        return (Destination(default, None),)
    pairs = _pair(parser, formats, outputs, default)
    binary = [pair.format for pair in pairs if pair.path is None and FORMATS[pair.format].is_binary]
    if binary and sys.stdout is not None and sys.stdout.isatty():
        parser.error(
            f"argument --format: will not write binary {binary[0]} to a terminal; use -o FILE"
        )
    return pairs


def says_when(to: Sequence[Destination]) -> bool:
    """Return True if one of the formats has a place for the time of a sample."""
    if to == ResultOptions().to:
        return False
    return any(FORMATS[destination.format].is_timed for destination in to)


def _pair(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    outputs: Sequence[str | None],
    default: str,
) -> tuple[Destination, ...]:
    for name in formats:
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            parser.error(f"argument --format: unknown format {name!r}; known: {known}")
    if len(set(outputs)) < len(outputs):
        parser.error("argument -o: the same file is named twice")
    if not outputs:
        if len(formats) > 1:
            parser.error("argument --format: each of several formats needs its own -o")
        # a file that perf looks for, and no terminal wants to see
        return (Destination(formats[0], "perf.data" if formats[0] == "perf.data" else None),)
    if not formats:
        for path in outputs:
            _check_name(parser, path or "")
        return tuple(Destination(of_path(path or "") or default, path) for path in outputs)
    if len(formats) != len(outputs):
        parser.error(f"{len(formats)} --format and {len(outputs)} -o: each -o needs one --format")
    return tuple(map(Destination, formats, outputs))


def _check_name(parser: argparse.ArgumentParser, path: str) -> None:
    """End with status 2 if a file's name promises a format that purebpf does not write."""
    _, dot, kind = path.lower().removesuffix(".gz").rpartition(".")
    if dot and kind in _FOREIGN:
        parser.error(
            f"argument -o: will not write {kind.upper()}; use -o FILE.html: the page saves the "
            "flame graph as SVG or PNG"
        )


def encode(destination: Destination, pieces: Iterable[str | bytes]) -> Iterable[str | bytes]:
    """The pieces as the file is to hold them: gzipped where its name says so."""
    if destination.format != "pprof" and (destination.path or "").lower().endswith(".gz"):
        from purebpf.results.formats.writer import compress

        return compress(pieces)
    return pieces


def write(profile: Profile, view: ResultOptions) -> None:
    """Write a saved profile to each destination, in its format; one file after the other appears.

    Raises:
        KernelError: one of them could not be written; the others were.
    """
    from purebpf.cli.output import Output
    from purebpf.results.formats import writer

    problems: list[KernelError] = []
    for destination in view.to:
        with _collecting(problems):
            with Output(destination.path) as output, writing(destination):
                pieces = (
                    _text(profile, view)
                    if destination.format == "text"
                    else writer.write(profile, destination.format)
                )
                output.write(encode(destination, pieces))
            if destination.path is not None:
                say_written(destination.path)
    raise_all(problems)


def _text(profile: Profile, view: ResultOptions) -> Iterable[str | bytes]:
    """The title, and the answer or each stack."""
    from purebpf.results.formats import answer, writer

    is_time = _is_time_of_threads(profile)
    details = not is_time and any(row.marks.waker for row in profile.rows())
    yield f"{head(writer.heading(profile), view, details=details)}\n"
    if not wants_answer(view, "text", details=details):
        yield from writer.write(profile, "text")
        return
    if is_time:
        from purebpf.cli import places

        yield from places.pieces(
            profile, top=view.top, everything=view.all_stacks, whole_names=view.verbose
        )
        return
    yield from answer.pieces(
        profile,
        cpus=answer.cpus_of_sample(profile),
        top=view.top,
        everything=view.all_stacks,
        whole_names=view.verbose,
    )


def _is_time_of_threads(profile: Profile) -> bool:
    """Return True for a profile as `offcpu` and `wall` make it."""
    rows = profile.rows()
    return profile.unit == "ns" and any(row.marks.times or row.marks.kind for row in rows)


def say_written(path: str) -> None:
    """`wrote out.html, 213 kB`."""
    from purebpf.cli import command
    from purebpf.results.model.units import bytes_in_unit  # not before everything is measured

    try:
        size = bytes_in_unit(os.stat(path).st_size)
    except OSError:  # a pipe that is gone
        size = "size unknown"
    command.say(f"wrote {path}, {size}")


@contextmanager
def _collecting(problems: list[KernelError]) -> Iterator[None]:
    """Add errors to `problems`, and go on."""
    try:
        yield
    except KernelError as problem:
        problems.append(problem)


def raise_all(problems: Sequence[KernelError]) -> None:
    """Raise the first error, if there is any; print the others before."""
    from purebpf.cli import command

    for problem in problems[1:]:
        command.note(str(problem))
    if problems:
        raise problems[0]


def writing(destination: Destination) -> AbstractContextManager[None]:
    """Show on a terminal which file is being written, if that takes long."""
    if destination.path is None:
        return nullcontext()
    from purebpf.cli.progress import doing

    return doing(f"writing {destination.path}")
