"""The compiler of BPF objects: $CLANG, a clang on PATH, or ziglang from PyPI."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

from purebpf.build.diagnostics import without_repetition
from purebpf.errors import CompileError, NotSupportedError
from purebpf.files.trusted_path import find_program, program_directories
from purebpf.tuples import NamedTuple

__all__ = ["Compiler", "compiler_programs", "find_compiler", "run_compiler"]

_OLDEST = 15
"""The clang with all that the headers use: type tags, declaration tags, 64-bit enums."""

_VERSION = re.compile(r"clang version (\d+)\.\S+")
_NAME = re.compile(r"clang(?:-(\d+))?")
_INSTALL = 'Install one: `pip install "purebpf[build]"`, or Debian\'s `apt-get install clang-19`'


class Compiler(NamedTuple):
    """A program that compiles C to BPF."""

    command: tuple[str, ...]
    version: str
    """What it says, as `"clang version 22.1.8"`."""
    flags: tuple[str, ...] = ()
    """Where its own headers are, and those of Linux that it brings."""


def find_compiler() -> Compiler:
    """The compiler to use.

    Raises:
        NotSupportedError: there is none; it names the places searched, and the package to install.
    """
    return _find(os.environ.get("CLANG", ""), tuple(program_directories()))


def compiler_programs() -> Iterator[str]:
    """The programs that `find_compiler` has to choose from, as they are on disk.

    The same programs are the same compiler; none is run to know it.
    """
    wanted = os.environ.get("CLANG", "")
    yield wanted
    if wanted:
        programs = [find_program(first) or first for first in shlex.split(wanted)[:1]]
    else:
        programs = [program for (program,) in _on_path(tuple(program_directories()))]
        if root := _ziglang_directory():
            programs.append(os.path.join(root, "zig"))
    for program in programs:
        with suppress(OSError):
            status = os.stat(program)
            yield f"{program} {status.st_ino} {status.st_size} {status.st_mtime_ns}"


@cache
def _find(wanted: str, directories: tuple[str, ...]) -> Compiler:
    if wanted:
        first, *others = shlex.split(wanted) or [""]
        # it runs in the directory of the source, where the same name may be another program
        program = find_program(first)
        if program is None:
            raise NotSupportedError("compiling BPF C", f"CLANG={wanted}: not on PATH. {_INSTALL}")
        command = (program, *others)
        problem = _problem(command)
        if problem:
            raise NotSupportedError("compiling BPF C", f"CLANG={wanted}: {problem}. {_INSTALL}")
        return Compiler(command, _version(command))
    looked_at = []
    for command in _on_path(directories):
        problem = _problem(command)
        if not problem:
            return Compiler(command, _version(command))
        looked_at.append(f"{command[0]} {problem}")
    if (zig := _ziglang()) is not None:
        return zig
    looked_at = looked_at or ["no clang on PATH"]
    reason = f"{'; '.join(looked_at)}; the package ziglang is not installed. {_INSTALL}"
    raise NotSupportedError("compiling BPF C", reason)


def _on_path(directories: Sequence[str]) -> Iterator[tuple[str]]:
    """`clang`, then `clang-NN`, the newest first, of every directory."""
    programs: dict[int, str] = {}
    for directory in directories:
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            match = _NAME.fullmatch(name)
            program = os.path.join(directory, name)
            if match and os.access(program, os.X_OK):
                programs.setdefault(int(match[1] or 1 << 30), program)
    for number in sorted(programs, reverse=True):
        yield (programs[number],)


def _problem(command: Sequence[str]) -> str:
    """Why this is not a compiler for BPF; "": it is."""
    version = _version(command)
    match = _VERSION.search(version)
    if not match:
        return f"says {version!r}, not its version" if version else "does not run"
    if int(match[1]) < _OLDEST:
        return f"is {match[0]}; {_OLDEST} or later is needed"
    if " bpfel " not in f"{_output([*command, '--print-targets'])} ":
        return "was built without the BPF target"
    return ""


@cache
def _version_of(command: tuple[str, ...]) -> str:
    return _output([*command, "--version"]).partition("\n")[0].strip()


def _version(command: Sequence[str]) -> str:
    return _version_of(tuple(command))


def _output(command: Sequence[str]) -> str:
    import subprocess

    try:
        done = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.decode(errors="replace")


def _ziglang_directory() -> str:
    """Return the folder of the package; "" when it is not installed."""
    from importlib.util import find_spec

    package = find_spec("ziglang")
    return next(iter(package.submodule_search_locations or ()), "") if package else ""


def _ziglang() -> Compiler | None:
    """Return the clang inside of ziglang, which has its own headers and Linux's."""
    root = _ziglang_directory()
    if not root:
        return None
    command = (sys.executable, "-m", "ziglang", "clang")
    libc = os.path.join(root, "lib", "libc", "include")
    machine = {"x86_64": "x86", "i686": "x86"}.get(os.uname().machine, os.uname().machine)
    flags = ["-isystem", os.path.join(root, "lib", "include")]
    for name in (f"{machine}-linux-any", "any-linux-any"):
        flags += ["-idirafter", os.path.join(libc, name)]
    return Compiler(command, _version(command), tuple(flags))


def run_compiler(compiler: Compiler, arguments: Sequence[str], directory: str, source: str) -> str:
    """Return its output, run in `directory`.

    Raises:
        CompileError: it refused; about `source`.
        NotSupportedError: it cannot be run.
    """
    import subprocess

    command = [*compiler.command, *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, cwd=directory, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        reason = f"{shlex.join(compiler.command)} does not run: {error.strerror}. {_INSTALL}"
        raise NotSupportedError("compiling BPF C", reason) from None
    said = without_repetition(done.stderr.decode(errors="replace"))
    if done.returncode:
        raise CompileError(source, said or f"the compiler ended with status {done.returncode}")
    return said
