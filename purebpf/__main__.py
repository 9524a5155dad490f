"""`purebpf COMMAND ...`: the console script, also `python -P -m purebpf` and the zipapp.

It chooses a command and calls its `main`. Only the chosen command is imported.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NoReturn

from purebpf.cli import bytecode
from purebpf.commands import COMMANDS, GROUPS, SYMPTOMS, package_of

__all__ = ["main", "start"]

_USAGE = "usage: purebpf COMMAND [options] ...\n       purebpf COMMAND --help\n"

_WRONG_OPTION = 2


def start() -> NoReturn:
    """Run the command of this process, and end it: the console script."""
    bytecode.install()
    leave = _Leave()
    is_first = not atexit._ncallbacks()  # noqa: SLF001 - the first is called last: at the end
    if is_first and not sys.flags.dev_mode:  # which shows resources that are open at the end
        atexit.register(leave)
    leave.status = main()
    sys.exit(leave.status)


class _Leave:
    """Ends the process with its status, once all else that happens at its end has happened.

    The interpreter would take modules and objects apart, one by one: 8 ms of a start, more after a
    long report. The kernel takes all of their memory at once.

    Attributes:
        status: of the command; None: it has none, so the interpreter shows the reason.
    """

    def __init__(self) -> None:
        self.status: int | None = None

    def __call__(self) -> None:
        if self.status is None:
            return
        with suppress(Exception):  # a closed pipe or a full disk: the interpreter says so
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(self.status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names, and return its exit status.

    Args:
        argv: the arguments; None: the arguments of the process.
    """
    if argv is None:  # the process ends with the command: `command.run` says why
        gc.disable()
    if argv is None and sys.argv[0].rpartition("/")[2] == "bpftrace":
        return _start("script", sys.argv[1:])
    arguments = sys.argv[1:] if argv is None else argv
    match arguments:
        case ["-e", *_]:
            return _start("script", arguments)
        case [] | ["-h" | "--help", *_] | ["help"]:
            return _show(_help())
        case ["-V" | "--version", *_]:
            return _show(_version())
        case ["help", name, *_]:
            return _start(name, ["--help"])
        case _:
            return _start(arguments[0], arguments[1:])


def _start(name: str, arguments: Sequence[str]) -> int:
    """Import one command, and run it."""
    if name not in COMMANDS:
        return _refuse(_unknown(name))
    from importlib import import_module

    return int(import_module(f"{package_of(name)}.__main__").main(arguments))


def _help() -> Iterator[str]:
    yield _USAGE
    width = max(map(len, COMMANDS))
    for title, commands in GROUPS.items():
        yield f"\n{title}\n"
        for name, task in commands.items():
            yield f"  {name:{width}}  {task}\n"
    yield "\nI see ...\n"
    width = max(map(len, SYMPTOMS))
    for symptom, line in SYMPTOMS.items():
        yield f"  {symptom:{width}}  -> {line}\n"


def _version() -> Iterator[str]:
    from purebpf import __version__

    yield f"purebpf {__version__}\n"


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    similar = get_close_matches(name, COMMANDS, 1)
    meant = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"unknown command {name!r}{meant}"


def _show(pieces: Iterator[str]) -> int:
    from purebpf.cli import command
    from purebpf.cli.output import Output

    def write() -> int:
        with Output() as output:
            output.write(pieces)
        return 0

    return command.run("purebpf", write)


def _refuse(problem: str) -> int:
    from purebpf.cli import command

    command.say(f"{_USAGE}purebpf: error: {problem}\n`purebpf --help` lists the commands.")
    return _WRONG_OPTION


if __name__ == "__main__":
    start()
