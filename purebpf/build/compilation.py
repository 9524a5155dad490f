"""C to a BPF object: compiled, stripped, and kept for the next time."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from purebpf.build.compiler import Compiler, find_compiler, run_compiler
from purebpf.build.headers import (
    check_places,
    include,
    make_vmlinux,
    needs_vmlinux,
    source_texts,
)
from purebpf.elf.strip import strip_debug
from purebpf.kernel.host.cache_files import CacheFiles, cache_home

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.kernel.load.object import Object

__all__ = ["compile", "load_c"]

_LIMIT = 64 << 20
"""Bytes of all objects that are kept."""

_ARCHITECTURES = {"x86_64": "x86", "i686": "x86", "aarch64": "arm64"}
_TEXT_NAME = "program.bpf.c"


class _Source(NamedTuple):
    """What is compiled: a file of a directory."""

    name: str
    directory: str
    text: str
    is_temporary: bool


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
    `#include "vmlinux.h"` brings what the source needs of the kernel's types when no directory
    that is searched has a file of this name.

    Args:
        source: a path; or a text, which has more than one line.
        includes: directories of headers, searched before those of purebpf.
        defines: macros: `{"SLOTS": 16}`; the value None or True defines one alone.
        cpu: the instruction set, for `-mcpu=`: v3 runs from Linux 5.1, v4 from 6.6.
        optimise: the level, for `-O`. The verifier takes little that was compiled with 0.
        btf: types for vmlinux.h; None: those of the running kernel.
        cache: keep the object in the user's cache, and take it from there when the preprocessed
            source, the flags and the compiler are the same.

    Warnings of the compiler (-Wall) are given as a RuntimeWarning.

    Raises:
        CompileError: the compiler refused; `.log` has its words, with the lines of C.
        NotSupportedError: there is no compiler; says what to install. No BTF for vmlinux.h. Headers
            would come from a directory that any user may write.
        OSError: the file cannot be read.
    """
    compiler = find_compiler()
    with ExitStack() as stack:
        c = _open(source, stack)
        directories = [os.path.abspath(directory) for directory in includes]
        flags = _flags(cpu, optimise, defines or {})
        flags += [f"-I{directory}" for directory in directories]
        temporary = [c.directory] if c.is_temporary else []
        check_places(c.text, c.directory, directories)
        texts = source_texts(c.text, [c.directory, *directories])
        if needs_vmlinux(texts, [c.directory, *directories]):
            made = stack.enter_context(TemporaryDirectory(prefix="purebpf-"))
            temporary.append(made)
            with open(os.path.join(made, "vmlinux.h"), "w", encoding="utf-8") as file:
                file.write(make_vmlinux(*texts, btf=btf))
            flags += [f"-I{made}", f"-ffile-prefix-map={made}=vmlinux"]
        flags += [f"-I{include()}", *_system_headers(), *compiler.flags]
        key = _key(compiler, flags, c, temporary) if cache else ""
        if key and (kept := _take(key)):
            return kept
        object_bytes = _compile(compiler, flags, c)
        if key:
            _cache().keep(key, [object_bytes])
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

    The arguments are those of `compile`. `variables` are globals to set before loading:
    `{"target_pid": 4711}`.

    Raises:
        CompileError, NotSupportedError: as `compile`.
        KernelError and the others: as `purebpf.load`.
    """
    from purebpf.elf.reader import read_object
    from purebpf.kernel.load.load import load

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


def _open(source: str | os.PathLike[str], stack: ExitStack) -> _Source:
    if _is_text(source):
        directory = stack.enter_context(TemporaryDirectory(prefix="purebpf-"))
        with open(os.path.join(directory, _TEXT_NAME), "w", encoding="utf-8") as file:
            file.write(source)
        return _Source(_TEXT_NAME, directory, source, is_temporary=True)
    path = os.path.abspath(source)
    with open(path, encoding="utf-8", errors="replace") as file:
        name, directory = os.path.basename(path), os.path.dirname(path)
        return _Source(name, directory, file.read(), is_temporary=False)


def _flags(cpu: str, optimise: int | str, defines: Mapping[str, object]) -> list[str]:
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


def _system_headers() -> list[str]:
    """Where Debian keeps <asm/types.h>, which <linux/types.h> includes."""
    directory = f"/usr/include/{os.uname().machine}-linux-gnu"
    return ["-idirafter", directory] if os.path.isdir(directory) else []


def _compile(compiler: Compiler, flags: list[str], c: _Source) -> bytes:
    with TemporaryDirectory(prefix="purebpf-") as directory:
        target = os.path.join(directory, "program.o")
        arguments = [*flags, "-c", c.name, "-o", target]
        _, said = run_compiler(compiler, arguments, c.directory, c.name)
        with open(target, "rb") as file:
            compiled = file.read()
    if said.strip():
        warnings.warn(said.rstrip(), RuntimeWarning, stacklevel=4)
    return strip_debug(compiled, c.name)


def _key(compiler: Compiler, flags: list[str], c: _Source, temporary: list[str]) -> str:
    """What decides the bytes of the object, as a name for a file.

    `temporary` are directories with another name each time.
    """
    preprocessed, _ = run_compiler(compiler, [*flags, "-E", c.name], c.directory, c.name)
    parts = [compiler.version, *compiler.command, *flags, c.name]
    content = b"\0".join([*(part.encode() for part in parts), preprocessed])
    for directory in temporary:
        content = content.replace(directory.encode(), b"")
    return f"{hashlib.sha256(content).hexdigest()}.bpf.o"


def _cache() -> CacheFiles:
    return CacheFiles(os.path.join(cache_home(), "purebpf", "objects"), _LIMIT)


def _take(key: str) -> bytes:
    """A kept object; b"" when there is none, or none that can be used."""
    try:
        reader = _cache().open(key)
        return reader(0, reader.size)
    except OSError:
        return b""
