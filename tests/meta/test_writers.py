"""Results are written by one writer: what else makes files is known, and each has its attack tests.

A file that another user made first, a link or a pipe in its place gets a result of root's unless
the writer looks (`purebpf.files.output_path`). A command that opens its output itself shows here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "purebpf"
KNOWN = {
    "services/agent/spool.py": "a folder that is checked",
    "services/agent/write_in.py": "a new file in a folder held by descriptor, by files.atomic_file",
    "build/compilation.py": "a folder made for it, mode 0700",
    "build/generation.py": "a new file in a folder held by descriptor",
    "build/linking.py": "a folder made for it, mode 0700",
    "cli/command.py": "/dev/null",
    "cli/output.py": "the writer of text, over files.atomic_file",
    "services/fleet/scratch.py": "a lock in a folder made for it, mode 0700",
    "services/fleet/stores/directory.py": "a store whose path is checked",
    "files/cache_files.py": "a cache whose path is checked",
    "observe/symbols/confined.py": "memory of ours (memfd)",
    "observe/symbols/debuginfod.py": "a cache whose path is checked",
    "files/atomic_file.py": "the writer of results",
    "tools/new/session.py": "a new file in a new folder held by descriptor",
    "tools/open/flags.py": "what flags are called",
    "testing/referee/__main__.py": "a part file",
    "testing/referee/programs.py": "a folder made for it, mode 0700",
    "testing/referee/profilers.py": "a folder made for it, mode 0700",
    "testing/referee/sources/threads.py": "a folder made for it, mode 0700",
    "syscall/proc.py": "the name of our own thread",
    "syscall/tracefs.py": "tracefs",
}
WRITERS = {"write_text", "write_bytes", "touch"}
FLAGS = {"O_CREAT", "O_WRONLY", "O_TMPFILE", "O_TRUNC"}


def _writes(tree: ast.AST) -> Iterator[int]:
    """Lines that may make or write a file by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in FLAGS:
            yield node.lineno
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        if name in WRITERS:
            yield node.lineno
        modes = [*node.args[:2], *(word.value for word in node.keywords if word.arg == "mode")]
        if name in {"open", "fdopen"} and any(
            isinstance(mode, ast.Constant)
            and isinstance(mode.value, str)
            and len(mode.value) <= 3
            and set(mode.value) & set("wax+")
            for mode in modes
        ):
            yield node.lineno


def test_files_are_written_by_those_who_look_first() -> None:
    found: dict[str, list[int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if lines := [*_writes(ast.parse(path.read_text()))]:
            found[str(path.relative_to(PACKAGE))] = lines
    assert found.keys() - KNOWN.keys() == set(), {name: found[name] for name in found}
    assert KNOWN.keys() - found.keys() == set()


def test_what_writes_is_seen() -> None:
    for code in ("open(p, 'w')", "p.open('xb')", "os.open(p, os.O_CREAT)", "p.write_text('')"):
        assert [*_writes(ast.parse(code))], code
    assert not [*_writes(ast.parse("open(p); open(p, 'rb'); os.open(p, os.O_RDONLY)"))]
