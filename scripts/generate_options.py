"""Write docs/options.md, the vocabulary of options, from the parsers of the commands.

It also writes the table of output formats in docs/formats.md, from `purebpf.formats.FORMATS`.

python scripts/generate_options.py            write it
python scripts/generate_options.py --check    fail if the parsers say something else
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from purebpf.formats import FORMATS
from purebpf.tools.completion.model import Command, Option, describe_commands

__all__ = ["FORMATS_PAGE", "PAGE", "TARGETS", "main", "page", "vocabulary", "with_formats"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"
FORMATS_PAGE = PAGE.with_name("formats.md")
TARGETS = ("--pid", "--tid", "--cpu", "--comm", "--cgroup", "--container", "--tree", "--uid")
_FORMATS_HEAD = "| format | file names | opens in |\n|---|---|---|\n"
_FIRST = """\
# Options

An option means the same in every command that has it. `python scripts/generate_options.py`
generates this page from the commands; `purebpf COMMAND --help` explains each option.

"""
_TREE = """
`-p` and `--comm` select processes with all their threads, but without their children. `--tree`
adds the children, existing and future ones. A command behind `--` is always measured with all
its children.

Three commands differ. `kwork` shows work of the kernel that belongs to no task. `triage` measures
the whole machine, because what slows a service is often another one, and shows the findings that
concern the target. `script` leaves out the events of other tasks; its predicates choose threads and
names: `/tid == 7 && comm == "web"/`.

`--json` is the same as `--format json` in every command that prints JSON.

`profile` and `record` also take `--count N`, as bcc and perf spell it, for `--period N`.
"""
_SHORT = """
## Letters

The letters follow the tool that a command comes from (bcc, perf, strace), so a few differ:

| letter | option |
|---|---|
"""


class Meaning(NamedTuple):
    """What a long option is: its letters, its value ("" for a switch), and who has it."""

    letters: frozenset[str]
    value: str
    commands: tuple[str, ...]


def vocabulary(commands: Iterable[Command]) -> dict[str, list[Meaning]]:
    """The meanings of each long option; those that differ only in their letters are one."""
    meanings: dict[str, dict[str, tuple[set[str], list[str]]]] = {}
    for command in commands:
        for option in command.options:
            for flag in option.flags:
                if flag.startswith("--"):
                    letters, names = meanings.setdefault(flag, {}).setdefault(
                        _value(option), (set(), [])
                    )
                    letters.update(letter for letter in option.flags if len(letter) == len("-x"))
                    names.append(command.name)
    return {
        flag: [
            Meaning(frozenset(letters), value, tuple(names))
            for value, (letters, names) in by_value.items()
        ]
        for flag, by_value in sorted(meanings.items())
    }


def _value(option: Option) -> str:
    if option.value is None:
        return ""
    return "|".join(option.value.choices) if option.value.choices else option.value.name


def page(commands: tuple[Command, ...]) -> str:
    """The whole page."""
    words = vocabulary(commands)
    return "".join((_FIRST, *_targets(commands, words), *_shared(words), *_letters(commands)))


def _targets(commands: Iterable[Command], words: dict[str, list[Meaning]]) -> Iterator[str]:
    yield "## Targets\n\n"
    yield f"| command | {' | '.join(f'`{flag}`' for flag in TARGETS)} |\n"
    yield f"|---{'|---' * len(TARGETS)}|\n"
    for command in commands:
        flags = {flag for option in command.options for flag in option.flags}
        if not flags.intersection(TARGETS):
            continue
        cells = ("yes" if flag in flags else "" for flag in TARGETS)
        yield f"| `{command.name}` | {' | '.join(cells)} |\n"
    assert words["--pid"]
    yield _TREE


def _shared(words: dict[str, list[Meaning]]) -> Iterator[str]:
    yield "\n## Options of several commands\n\n"
    yield "| option | letters | value | commands |\n|---|---|---|---|\n"
    for flag, meanings in words.items():
        for letters, value, names in meanings:
            if len(names) == 1 and len(meanings) == 1:
                continue
            shown = ", ".join(f"`{letter}`" for letter in sorted(letters))
            spelled = f"`{value}`".replace("|", " ") if value else ""
            yield f"| `{flag}` | {shown} | {spelled} | {', '.join(names)} |\n"


def _letters(commands: Iterable[Command]) -> Iterator[str]:
    by_letter: dict[str, dict[str, list[str]]] = {}
    for command in commands:
        for option in command.options:
            long = next((flag for flag in option.flags if flag.startswith("--")), "")
            for letter in option.flags:
                if not letter.startswith("--"):
                    by_letter.setdefault(letter, {}).setdefault(long, []).append(command.name)
    yield _SHORT
    for letter, words in sorted(by_letter.items()):
        if len(words) > 1:
            parts = (f"`{long}` ({', '.join(names)})" for long, names in words.items() if long)
            yield f"| `{letter}` | {'; '.join(parts)} |\n"


def with_formats(text: str) -> str:
    """Return docs/formats.md with a row for each output format."""
    before, head, after = text.partition(_FORMATS_HEAD)
    rows = [
        f"| `{name}` | {', '.join(f'`{suffix}`' for suffix in output_format.suffixes)} "
        f"| {output_format.opens_in} |"
        for name, output_format in FORMATS.items()
    ]
    return "".join((before, head, "\n".join(rows), "\n\n", after.partition("\n\n")[2]))


def main(arguments: list[str]) -> int:
    """Write or check the pages."""
    pages = {
        PAGE: page(describe_commands()),
        FORMATS_PAGE: with_formats(FORMATS_PAGE.read_text()),
    }
    if "--check" in arguments:
        return 0 if all(path.read_text() == text for path, text in pages.items()) else 1
    for path, text in pages.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
