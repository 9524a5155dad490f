"""Command lines in messages, hints and --help are understood by the commands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest

from purebpf.commands import COMMANDS, package_of
from purebpf.measure import named_targets
from tests.meta.test_command_lines import NEED_ARGUMENTS as NEEDED

NEED_ARGUMENTS = NEEDED | {"completion"}
TITLES = {("stat", "-b"), ("inspect", "--stubs")}
"""Options that a message is about."""
PACKAGE = Path(__file__).resolve().parents[2] / "purebpf"
VALUE = "4711"
"""The text in place of a value that only a run knows: most are process IDs."""
IN_TICKS = re.compile(r"`(?:sudo )?purebpf (\w+)([^`]*)`")
EXAMPLE = re.compile(r"^ +(?:sudo )?purebpf (\w+)(.*)$", re.MULTILINE)
IN_SENTENCE = re.compile(r"(?<![\w`.'\"-])purebpf (\w+)((?: +[^\s`]+)*)")
ARGUMENT = re.compile(rf"-|\d|[A-Z_]+\b|[^ ]*/|.*{VALUE}")
SHELL = {">", "<", "|", "&&"}
END = re.compile(r"[,;:.)]+$")
OFTEN_PLACEHOLDERS = re.compile(r"\bPIDS?\b|\bTID\b|\$!")


def texts(tree: ast.Module) -> Iterator[str]:
    """The strings of a file that a user may read: no docstrings."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield "".join(
                part.value if isinstance(part, ast.Constant) else VALUE for part in node.values
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def arguments_in(rest: str) -> str:
    """The words of a sentence behind the name of a command that are its arguments."""
    kept: list[str] = []
    for word in rest.split():
        if not ARGUMENT.match(word) and not (kept and kept[-1].startswith("-")):
            break
        kept.append(END.sub("", word))
        if END.search(word):
            break
    return " ".join(kept)


def commands_in(text: str) -> Iterator[tuple[str, str]]:
    """Commands and their arguments."""
    text = re.sub(r" *\\\n *", " ", text)
    yield from IN_TICKS.findall(text)
    text = IN_TICKS.sub("", text)
    for name, rest in EXAMPLE.findall(text):
        yield name, "" if rest.startswith("  ") else re.split(r" {2,}", rest)[0]
    for name, rest in IN_SENTENCE.findall(EXAMPLE.sub("", text)):
        yield name, arguments_in(re.split(r" < ", rest)[0])


def hints() -> set[tuple[str, str, str]]:
    """Files, commands, and arguments."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for text in texts(ast.parse(path.read_text())):
            for name, rest in commands_in(text):
                if name in COMMANDS and (name, rest.strip()) not in TITLES:
                    found.add((str(path.relative_to(PACKAGE)), name, rest.strip()))
    return found


HINTS = sorted(hints())


@pytest.mark.parametrize(("file", "name", "rest"), HINTS)
def test_a_command_in_a_message_parses(
    file: str, name: str, rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del file  # in the name of the test
    monkeypatch.setattr(named_targets, "container_cgroup", lambda _: "/sys/fs/cgroup")
    monkeypatch.setattr(named_targets, "processes_named", lambda _: (185,))
    command = import_module(f"{package_of(name)}.__main__")
    if name == "setup":
        rest = re.sub(r"\b(ann|dev)\b", "root", rest)
    arguments = shlex.split(OFTEN_PLACEHOLDERS.sub(VALUE, rest), comments=True)
    arguments = list(takewhile(lambda word: word not in SHELL, arguments))
    if arguments or name not in NEED_ARGUMENTS:
        command.parse(arguments)


def test_there_are_many() -> None:
    assert len(HINTS) > 150
    assert {name for _, name, _ in HINTS} == set(COMMANDS)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("waits: purebpf offcpu -p 7, or wait", ("offcpu", "-p 7")),
        ("purebpf dump 4711 shows where", ("dump", "4711")),
        ("it names methods: `purebpf profile --native`, or", ("profile", "--native")),
        ("examples:\n  purebpf mem --show faults 5   page faults", ("mem", "--show faults 5")),
        ("more: purebpf offcpu --state ?", ("offcpu", "--state ?")),
    ],
)
def test_a_command_is_found_in_a_text(text: str, command: tuple[str, str]) -> None:
    assert [(name, rest.strip()) for name, rest in commands_in(text)] == [command]
