"""The runtimes of a process: which it runs, found before its threads are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from purebpf.errors import KernelError, NotSupportedError
from purebpf.observe.runtimes.cpython.python_process import KnownFiles, PythonProcess, find_python
from purebpf.observe.runtimes.hotspot.libjvm import find_library
from purebpf.observe.runtimes.script_file import script_language
from purebpf.observe.runtimes.v8.node_file import find_node
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.runtimes.hotspot.java_process import JavaProcess, JavaReading
    from purebpf.observe.runtimes.script_process import ScriptProcess
    from purebpf.observe.runtimes.v8.v8_process import V8Process, V8Reading

__all__ = ["Runtimes", "find_runtimes"]

_MOST_CHILDREN = 8


class Runtimes(NamedTuple):
    """The runtimes of a process: at most one of them, but for Python beside Java or V8."""

    python: PythonProcess | None
    java: JavaProcess | None
    v8: V8Process | None
    script: ScriptProcess | None

    @property
    def generating(self) -> JavaProcess | V8Process | None:
        """The runtime that generates machine code."""
        return self.java or self.v8

    def look(self) -> JavaReading | V8Reading | None:
        """Return the runtime with generated code as it is now; None: there is none any more, its
        process may be about to end.
        """
        if self.generating is not None:
            with suppress(NotSupportedError):
                return self.generating.look()
        return None

    def version(self, language: str) -> str:
        """Return the version of PHP or Ruby; "" if the process runs another language."""
        if self.script is None or self.script.language != language:
            return ""
        return ".".join(map(str, self.script.version))


def find_runtimes(pid: int, notes: list[str], files: KnownFiles, open_now: ExitStack) -> Runtimes:
    """Find the runtimes of a process, which `open_now` closes.

    Args:
        pid: the process.
        notes: gets a sentence for a runtime that cannot be read.
        files: interpreters that were read before.
        open_now: what the caller closes at the end.

    Raises:
        KernelError: the process is another user's.
    """
    python = _find_python(pid, notes, files)
    if python is not None:
        open_now.enter_context(python)
    java = _find_java(pid, notes)
    v8 = None if java is not None else _find_v8(pid, notes)
    if (generating := java or v8) is not None:
        open_now.enter_context(generating)
    script = _find_script(pid, notes) if python is None and generating is None else None
    if script is not None:
        open_now.enter_context(script)
    return Runtimes(python, java, v8, script)


def _find_python(pid: int, notes: list[str], files: KnownFiles) -> PythonProcess | None:
    try:
        python = find_python(pid, files)
    except NotSupportedError as error:
        notes.append(f"native frames only: {error}")
        return None
    if python is None:
        notes += _pythons_below(pid)
    return python


def _find_java(pid: int, notes: list[str]) -> JavaProcess | None:
    if find_library(pid) is None:
        return None
    from purebpf.observe.runtimes.hotspot.java_process import find_java  # which few processes need

    try:
        java = find_java(pid)
        if java is not None:
            java.look()
    except NotSupportedError as error:
        notes.append(f"native frames only: {error}")
        return None
    return java


def _find_v8(pid: int, notes: list[str]) -> V8Process | None:
    if find_node(pid) is None:
        return None
    from purebpf.observe.runtimes.v8.v8_process import find_v8  # which few processes need

    try:
        return find_v8(pid)
    except NotSupportedError as error:
        notes.append(f"native frames only: {error}")
        return None


def _find_script(pid: int, notes: list[str]) -> ScriptProcess | None:
    """Return the PHP or the Ruby of a process: few processes need the modules of either."""
    try:
        language = script_language(pid)
        if language == "php":
            from purebpf.observe.runtimes.php.php_process import find_php

            return find_php(pid)
        if language == "ruby":
            from purebpf.observe.runtimes.ruby.ruby_process import find_ruby

            return find_ruby(pid)
    except NotSupportedError as error:
        notes.append(f"native frames only: {error}")
    return None


def _pythons_below(pid: int) -> Iterator[str]:
    """For who asks about a launcher: PyInstaller's --onefile, sudo, uv run."""
    for child in proc.children(pid)[:_MOST_CHILDREN]:
        with suppress(NotSupportedError, KernelError):
            if (python := find_python(child)) is not None:
                python.close()
                version = ".".join(map(str, python.version))
                runs = f"its child {child} runs CPython {version}"
                yield f"no Python here; {runs}: purebpf dump {child}"
