"""The headers that BPF C includes: purebpf's, and a vmlinux.h made for a source."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from purebpf.errors import FormatError, NotSupportedError
from purebpf.files.regular_file import opened_regular
from purebpf.files.trusted_path import any_user_may_write

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf

__all__ = [
    "check_places",
    "include",
    "kernel_types",
    "make_vmlinux",
    "needs_vmlinux",
    "read_sources",
    "source_texts",
]

_LOCAL = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n\0]+)"', re.MULTILINE)
_MOST = 64 << 20
"""Bytes of all headers of a source. A vmlinux.h has 4 million."""
_VMLINUX = "vmlinux.h"
_HELPER = re.compile(r"\(\*const (bpf_\w+)\)")


def include() -> str:
    """The directory for `-I`: `bpf/bpf_helpers.h`, `bpf/bpf_tracing.h` and the others.

    Raises:
        NotADirectoryError: purebpf runs from a zip file, which compilers cannot read.
    """
    directory = os.path.join(os.path.dirname(__file__), "include")
    if not os.path.isdir(directory):
        raise NotADirectoryError(
            20, "purebpf is in a zip file; install it to compile with its headers", directory
        )
    return directory


def make_vmlinux(*sources: str, btf: Btf | None = None) -> str:
    """Return a `vmlinux.h` with the types that some C needs, or with every type of the kernel.

    Args:
        sources: texts of C that will include it, and of their headers; none: every type.
        btf: types of another kernel: `purebpf.Btf.read(path)`; None: the running one's.

    Raises:
        NotSupportedError: this kernel has no BTF.
        FormatError: it is damaged.
    """
    from purebpf.btf.dump.vmlinux import vmlinux_h

    if btf is None:
        from purebpf.loader.types.kernel_btf import kernel_btf

        btf = kernel_btf()
    if not sources:
        return vmlinux_h(btf)
    text = "\n".join(sources)
    return vmlinux_h(btf, f"{text}\n{_prototypes(text)}")


def kernel_types(btf: Btf | None) -> str:
    """A digest of the types that `make_vmlinux` takes.

    Raises:
        NotSupportedError: this kernel has no BTF.
    """
    from purebpf.loader.types.kernel_btf import read_kernel_btf

    data = read_kernel_btf() if btf is None else btf.data
    base = kernel_types(btf.base) if btf and btf.base else ""
    return f"{base}{hashlib.sha256(data).hexdigest()}"


def check_places(text: str, directory: str, includes: Sequence[str]) -> None:
    """Refuse to take headers from where any user can put some: they would be in the program.

    Args:
        text: of the source.
        directory: the folder of the source, searched first for `#include "name"`; "": none.
        includes: directories of headers.

    Raises:
        NotSupportedError: says which directory.
    """
    own = [directory] if directory and _LOCAL.search(text) else []
    for place in (*own, *includes):
        if any_user_may_write(place):
            why = "any user may put headers there. Move the source to a directory of your own"
            raise NotSupportedError(f"including headers from {place}", why)


def needs_vmlinux(texts: Sequence[str], directories: Sequence[str]) -> bool:
    """Return True if these include a vmlinux.h that is in none of the directories."""
    included = any(_VMLINUX in _LOCAL.findall(text) for text in texts)
    return included and not any(
        os.path.exists(os.path.join(directory, _VMLINUX)) for directory in directories
    )


def source_texts(text: str, directories: Sequence[str]) -> list[str]:
    """A source, and the headers that it includes by `"name"`, and they in turn.

    Raises:
        FormatError: they have more bytes than any source needs.
        OSError: one cannot be read.
    """
    return [text, *_headers(text, directories)]


def read_sources(paths: Sequence[str]) -> list[str]:
    """The texts of C files, and of the headers that they include by `"name"`.

    Raises:
        FormatError: as `source_texts`.
        OSError: a file cannot be read.
    """
    texts = []
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST + 1)
        if len(text) > _MOST:
            raise FormatError(path, "source", f"more than {_MOST >> 20} MiB")
        texts += source_texts(text, [os.path.dirname(os.path.abspath(path))])
    return texts


def _headers(text: str, directories: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    left = _MOST
    waiting = [(text, tuple(directories))]
    while waiting:
        text, searched = waiting.pop()
        for name in _LOCAL.findall(text):
            candidates = (os.path.realpath(os.path.join(above, name)) for above in searched)
            path = next(filter(os.path.isfile, candidates), None)
            if path is None or path in seen:
                continue
            seen.add(path)
            with opened_regular(path) as fd, open(fd, "rb", closefd=False) as file:
                contents = file.read(left + 1)
            left -= len(contents)
            if left < 0:
                raise FormatError(path, "headers", f"more than {_MOST >> 20} MiB together")
            header = contents.decode(errors="replace")
            yield header
            waiting.append((header, (os.path.dirname(path), *directories)))


def _prototypes(text: str) -> str:
    """Return the return types of the helpers that a text names:
    `bpf_get_current_task_btf()->pid`.
    """
    from importlib.resources import files

    header = files("purebpf.build") / "include/bpf/bpf_helper_defs.h"
    words = set(re.findall(r"\bbpf_\w+", text))
    returned = []
    for line in header.read_text().splitlines():
        match = _HELPER.search(line)
        if match and match[1] in words:
            returned.append(line[: match.start()].removeprefix("static "))
    return "\n".join(returned)
