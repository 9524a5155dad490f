"""C to a BPF object: compiled, stripped, and kept for the next time."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeGuard

from purebpf._version import __version__
from purebpf.build.compiler import Compiler, compiler_programs, find_compiler, run_compiler
from purebpf.build.headers import (
    check_places,
    include,
    kernel_types,
    make_vmlinux,
    needs_vmlinux,
    source_texts,
)
from purebpf.build.kept_objects import KeptObject, headers_read
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.load.object import Object

__all__ = ["compile", "load_c"]

_ARCHITECTURES = {"x86_64": "x86", "i686": "x86", "aarch64": "arm64"}
_TEXT_NAME = "program.bpf.c"


class _Source(NamedTuple):
    """The source to compile: a file of a directory."""

    name: str
    directory: str
    """"" for a text."""
    text: str


class _Compiled(NamedTuple):
    """An object that errors call by its source: `elf.reader.Resource`."""

    name: str
    data: bytes

    def read_bytes(self) -> bytes:
        """The object."""
        return self.data


def compile(  # noqa: A001 - as re.compile()
    source: str | os.PathLike[str],
    *,
    includes: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    cpu: str = "v3",
    optimise: int | str = 2,
    btf: Btf | None = None,
    cache: bool = True,
) -> bytes:
    """Compile BPF C for machines of this architecture.

    The object has BTF and no DWARF; its bytes do not depend on the directory of the source.
    `#include "vmlinux.h"` brings the kernel types that the source needs when no searched directory
    has a file of this name.

    Args:
        source: a path; or a text, which has more than one line.
        includes: directories of headers, searched before purebpf's own.
        defines: macros: `{"SLOTS": 16}`; the value None or True defines one alone.
        cpu: the instruction set, for `-mcpu=`: v3 runs from Linux 5.1, v4 from 6.6.
        optimise: the level, for `-O`. The verifier takes little that was compiled with 0.
        btf: types for vmlinux.h; None: the running kernel's.
        cache: keep the object in the user's cache, and take it from there, without a compiler,
            when the source, its headers, the flags and the compiler are the same.

    Warnings of the compiler (-Wall) become a RuntimeWarning.

    Raises:
        CompileError: the compiler refused; `.log` has its words, with the lines of C.
        NotSupportedError: there is no compiler (it names the package to install), no BTF for
            vmlinux.h, or headers would come from a directory that any user may write.
        OSError: the file cannot be read.
    """
    c = _read(source)
    directories = [os.path.abspath(directory) for directory in includes]
    searched = [c.directory, *directories] if c.directory else directories
    options = _options(cpu, optimise, defines or {})
    check_places(c.text, c.directory, directories)
    texts = source_texts(c.text, searched)
    has_types = needs_vmlinux(texts, searched)
    kept = None
    if cache:
        inputs = [__version__, c.name, *compiler_programs(), *options, *_own_flags()]
        kept = KeptObject([*inputs, kernel_types(btf) if has_types else ""], texts, searched)
        if object_bytes := kept.take():
            return object_bytes
    compiler = find_compiler()
    with ExitStack() as stack:
        flags = [*options, *(f"-I{directory}" for directory in directories)]
        types = ""
        if has_types:
            types = _directory_with("vmlinux.h", make_vmlinux(*texts, btf=btf), stack)
            flags += [f"-I{types}", f"-ffile-prefix-map={types}=vmlinux"]
        flags += [*_own_flags(), *compiler.flags]
        directory = c.directory or _directory_with(c.name, c.text, stack)
        object_bytes, paths = _compile(compiler, flags, c.name, directory)
        if kept:
            made = {types, "" if c.directory else directory}
            kept.keep(object_bytes, [path for path in paths if os.path.dirname(path) not in made])
        return object_bytes


def load_c(
    source: str | os.PathLike[str],
    *,
    variables: Mapping[str, object] | None = None,
    includes: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    cpu: str = "v3",
    optimise: int | str = 2,
    btf: Btf | None = None,
    cache: bool = True,
) -> Object:
    """Compile BPF C and load it into this kernel: a tool in one file, with its C inside.

    The arguments are the same as for `compile`. `variables` are globals to set before loading:
    `{"target_pid": 4711}`.

    Raises:
        CompileError, NotSupportedError: as `compile`.
        KernelError and the others: as `purebpf.load`.
    """
    from purebpf.elf.reader import read_object
    from purebpf.loader.load.load import load

    made = compile(
        source,
        includes=includes,
        defines=defines,
        cpu=cpu,
        optimise=optimise,
        btf=btf,
        cache=cache,
    )
    spec = read_object(_Compiled(_TEXT_NAME if _is_text(source) else os.fspath(source), made))
    return load(spec.set(**(variables or {})), btf)


def _is_text(source: str | os.PathLike[str]) -> TypeGuard[str]:
    return isinstance(source, str) and "\n" in source


def _read(source: str | os.PathLike[str]) -> _Source:
    if _is_text(source):
        return _Source(_TEXT_NAME, "", source)
    path = os.path.abspath(source)
    with open(path, encoding="utf-8", errors="replace") as file:
        return _Source(os.path.basename(path), os.path.dirname(path), file.read())


def _directory_with(name: str, text: str, stack: ExitStack) -> str:
    """A new directory with one file, until the end."""
    from tempfile import TemporaryDirectory

    directory = stack.enter_context(TemporaryDirectory(prefix="purebpf-"))
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(text)
    return directory


def _options(cpu: str, optimise: int | str, defines: Mapping[str, object]) -> list[str]:
    """The flags that do not name directories."""
    machine = os.uname().machine
    target = "bpfel" if sys.byteorder == "little" else "bpfeb"
    macros = {f"__TARGET_ARCH_{_ARCHITECTURES.get(machine, machine)}": None, **defines}
    return [
        *("-target", target, f"-mcpu={cpu}", f"-O{optimise}", "-g", "-Wall", "-fno-ident"),
        *("-fno-stack-protector", "-fdebug-compilation-dir=."),
        f"-ffile-prefix-map={include()}=purebpf",
        *(
            f"-D{name}" if value is None or value is True else f"-D{name}={value}"
            for name, value in macros.items()
        ),
    ]


def _own_flags() -> list[str]:
    """Return the flags for purebpf's headers, and for Debian's <asm/types.h>, for
    <linux/types.h>.
    """
    directory = f"/usr/include/{os.uname().machine}-linux-gnu"
    system = ["-idirafter", directory] if os.path.isdir(directory) else []
    return [f"-I{include()}", *system]


def _compile(
    compiler: Compiler, flags: list[str], name: str, source_directory: str
) -> tuple[bytes, list[str]]:
    """The object, and the files that the compiler read."""
    from tempfile import TemporaryDirectory

    from purebpf.elf.strip import strip_debug

    with TemporaryDirectory(prefix="purebpf-") as directory:
        target = os.path.join(directory, "program.o")
        rule = os.path.join(directory, "program.d")
        arguments = [*flags, "-MD", "-MF", rule, "-c", name, "-o", target]
        said = run_compiler(compiler, arguments, source_directory, name)
        with open(target, "rb") as file:
            compiled = file.read()
        with open(rule, encoding="utf-8", errors="surrogateescape") as text:
            headers = headers_read(text.read(), source_directory)
    if said.strip():
        warnings.warn(said.rstrip(), RuntimeWarning, stacklevel=4)
    return strip_debug(compiled, name), headers
