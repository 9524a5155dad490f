"""Names the kind of a file that should have been an object: an earlier stage, or a container of
one.
"""

from __future__ import annotations

__all__ = ["describe"]

_COMPILE = "clang -g -O2 -target bpf -I/usr/include/$(uname -m)-linux-gnu -c"
_KINDS = (
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\xde\xc0\x17\x0b", "LLVM bitcode"),
    (b"; ModuleID", "LLVM assembly"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (b"!<arch>\n", "an archive; extract the object with: ar x"),
    (b"PK\x03\x04", "a zip file; read the object out of it with zipfile.Path"),
)
_OF_C = (b"#include", b"#define", b"SEC(", b"//", b"/*", b"// SPDX", b"BPF_HASH", b"int ")


def describe(data: bytes, source: str) -> str:
    """`data`, the file's first bytes, in words, with the command that makes an object of it."""
    if not data:
        return "the file is empty"
    for magic, kind in _KINDS:
        if data.startswith(magic):
            made = kind.startswith("LLVM")
            return f"{kind}, not an object; compile without -emit-llvm and -flto" if made else kind
    if _is_text(data) and (source.endswith((".c", ".h")) or any(word in data for word in _OF_C)):
        path = source if source.endswith(".c") else "NAME.bpf.c"
        command = f"{_COMPILE} {path} -o {path.removesuffix('.c')}.o"
        return f"C source, not an object; compile it with: {command}"
    return "not an ELF file"


def _is_text(data: bytes) -> bool:
    """Return True if the content is text; the last character may be cut."""
    return b"\0" not in data and bool(data.decode("utf-8", "ignore").strip())
