"""BPF C compiled from Python: for development, tests and build hooks; tools run without it.

    object_bytes = purebpf.build.compile("tool.bpf.c")      # clang, or ziglang from PyPI
    with purebpf.build.load_c(C_TEXT) as obj:               # one file with C inside
        ...

`pip install "purebpf[build]"` brings a compiler; a clang that is installed is used before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.build.compilation import compile, load_c  # noqa: A004 - as re.compile()
    from purebpf.build.generation import generate
    from purebpf.build.headers import include, make_vmlinux
    from purebpf.build.linking import link

__all__ = ["compile", "generate", "include", "link", "load_c", "make_vmlinux"]

if not TYPE_CHECKING:
    __getattr__ = names(
        __name__,
        {
            "compile": "purebpf.build.compilation.compile",
            "generate": "purebpf.build.generation.generate",
            "include": "purebpf.build.headers.include",
            "link": "purebpf.build.linking.link",
            "load_c": "purebpf.build.compilation.load_c",
            "make_vmlinux": "purebpf.build.headers.make_vmlinux",
        },
    )
