"""Messages, docstrings, comments and pages say things plainly: no banned phrase (CONTRIBUTING.md).

A phrase is banned when it hides who acts ("nobody", "whoever", "is told"), or reads as a riddle
("is no number", "knows no", "stands for"). Quoted output of other tools and code is left out:
text in backticks, fenced blocks, and names of arguments.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

BANNED = re.compile(
    r"\b(?:nobody|somebody|whoever|whomever|whose|told|stands|meanwhile|thereof|by hand"
    r"|so that none|(?:has|have) no words? for|knows? no"
    r"|(?<!there )(?:is|are|was|were) no(?! longer))\b",
    re.IGNORECASE,
)
CODE = re.compile(r"`[^`]*`|^\s*\w+:(?=\s)", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

PARTICIPLE = re.compile(
    r"_*(?!(?:need|speed|feed|seed|embed|exceed|proceed|red|sched|shared|expected)(?:_|$))"
    r"(?:[a-z]+ed|made|found|taken|known|kept|left|sent|shown|built|held|lost|given|said|begun"
    r"|written|spelt|chosen|drawn|broken|bound)(?:_|$)"
)

DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Text(NamedTuple):
    """A piece of prose, and where it begins."""

    kind: str
    line: int
    text: str


def prose(path: Path) -> Iterator[Text]:
    """The messages, docstrings and comments of a module."""
    source = path.read_text()
    tree = ast.parse(source)
    docstrings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    ignored = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    } | names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield Text("message", node.lineno, "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in ignored:
            kind = "docstring" if node in docstrings else "message"
            yield Text(kind, node.lineno, node.value)
    yield from comments(source)


def names(tree: ast.Module) -> set[ast.expr]:
    """The strings of `__all__`: they are code."""
    return {
        each
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "__all__"
        and isinstance(node.value, ast.List)
        for each in node.value.elts
    }


def comments(source: str) -> Iterator[Text]:
    """The comments, those of following lines as one text."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != last + 1:
                yield Text("comment", last - len(block) + 1, " ".join(block))
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    if block:
        yield Text("comment", last - len(block) + 1, " ".join(block))


def banned(text: str) -> list[str]:
    """The banned phrases in a text."""
    plain = CODE.sub(" ", FENCED.sub(" ", text))
    return BANNED.findall(" ".join(plain.split()))


LIKELY = re.compile(
    r"\b(?:nobody|somebody|whoever|whomever|whose|told|stands|meanwhile|thereof|by\W+hand"
    r"|so\W+that\W+none|no\W+words?\W+for|(?:knows?|is|are|was|were)(?:\W|\bf\b)+no)\b",
    re.IGNORECASE,
)
"""What the source of a banned phrase has, however it is wrapped: most files need no parsing."""


@cache
def modules(folder: str) -> dict[str, list[Text]]:
    """The prose of each module below a folder, but for this one."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(ROOT)): [*prose(path)] for path in paths if path != Path(__file__)}


KINDS = {
    "purebpf": ("message", "docstring", "comment"),
    "scripts": ("message", "docstring", "comment"),
    "bench": ("message", "docstring", "comment"),
    "examples": ("message", "docstring", "comment"),
    "tests": ("docstring", "comment"),  # its strings are what users type, such as the user `nobody`
}


@pytest.mark.parametrize(
    ("folder", "kind"), [(folder, kind) for folder, kinds in KINDS.items() for kind in kinds]
)
def test_modules_use_plain_english(folder: str, kind: str) -> None:
    bad = [
        f"{path}:{text.line}: {phrases}"
        for path, texts in modules(folder).items()
        for text in texts
        if text.kind == kind and (phrases := banned(text.text))
    ]
    assert not bad, "\n".join(bad)


RIDDLE = re.compile(
    r"(?<!there)_(?:(?:is|are|was|were)_no(?!_longer|_more)|nobody|somebody|whoever|whose|told"
    r"|stands|meanwhile|by_hand|knows?_no)(?:_|$)"
)


def test_tests_are_named_in_plain_english() -> None:
    bad = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"def (test_\w+)", path.read_text())
        if RIDDLE.search(name)
    ]
    assert not bad, "\n".join(bad)


def test_vague_class_names_have_one_meaning() -> None:
    """Seven classes were called Place, six Names: each says now which place, which names."""
    defined = [
        node.name
        for path in sorted((ROOT / "purebpf").rglob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    vague = {"Place", "Names", "Wanted", "Run", "Taken", "Found"}
    assert {name: defined.count(name) for name in vague if defined.count(name) > 1} == {}


THROW_AWAY = {"found", "each"}
"""Names of variables that say nothing."""


def test_variables_say_what_they_hold() -> None:
    """Fields of records may be called `found`: their class says what that is."""
    bad = []
    for path in sorted((ROOT / "purebpf").rglob("*.py")):
        text = path.read_text()
        if not any(re.search(rf"\b{name}\b", text) for name in THROW_AWAY):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        fields = {
            id(statement.target)
            for node in nodes
            if isinstance(node, ast.ClassDef)
            for statement in node.body
            if isinstance(statement, ast.AnnAssign)
        }
        for node in nodes:
            assigned = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.arg if isinstance(node, ast.arg) else node.id if assigned else ""
            if name in THROW_AWAY and id(node) not in fields:
                bad.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    assert not bad, "\n".join(bad)


def test_functions_are_named_by_verbs() -> None:
    """At most 3 in 100 by a past participle, which says what comes back, not what is done."""
    defined = [
        node.name
        for path in (ROOT / "purebpf").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any(ast.unparse(each).endswith("property") for each in node.decorator_list)
    ]
    participles = [name for name in defined if PARTICIPLE.match(name)]
    assert len(participles) < 0.03 * len(defined), sorted(participles)


def test_pages_use_plain_english() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    pages += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    found = {str(each.relative_to(ROOT)): banned(each.read_text()) for each in pages}
    assert {page: phrases for page, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize(
    "text",
    [
        "x is no number",
        "nobody knows",
        "whose time",
        "the kernel knows\n    no ENUM64",
        "are no rows",
    ],
)
def test_the_banned_phrases_are_found(text: str) -> None:
    assert banned(text)


@pytest.mark.parametrize(
    "text", ["there is no map", "it is no longer open", "runs as `nobody`", "    whose: a task"]
)
def test_plain_text_and_code_are_not(text: str) -> None:
    assert not banned(text)


def test_every_kind_of_text_is_read(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""A."""\n__all__ = ["whose"]\n# one\n# two\nx = f"b {1}"  # c\ny = "d"\n')
    assert sorted(prose(module)) == [
        Text("comment", 3, "one two c"),
        Text("docstring", 1, "A."),
        Text("message", 5, "b {}"),
        Text("message", 6, "d"),
    ]
