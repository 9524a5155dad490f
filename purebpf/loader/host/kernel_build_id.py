"""The build id of the running kernel."""

from __future__ import annotations

from purebpf.symbols.elf_notes import find_build_id

__all__ = ["kernel_build_id", "read_build_id"]


def kernel_build_id() -> bytes:
    """The build id of the running kernel (20 bytes); b"" where it has none."""
    return read_build_id("/sys/kernel/notes")


def read_build_id(path: str) -> bytes:
    """Return the build id in a file of notes as sysfs has them, of the kernel or a module; b"":
    it has none.
    """
    try:
        with open(path, "rb") as file:
            return find_build_id(file.read())
    except OSError:
        return b""
