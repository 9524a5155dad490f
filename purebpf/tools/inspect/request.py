"""The file to look at, and the form of the report."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["InspectOptions"]


class InspectOptions(NamedTuple):
    """The subject of the report.

    Attributes:
        path: the object file, or a perf.data file.
        btf: a file with the types of another kernel; None is the running one and its modules.
        format: "text" or None, or "json".
        output: a file for the result; None is standard output.
        btf_for: write the part of this file's types that the object needs, as BTF, instead.
        sections: the ELF file's header, sections, relocations and notes instead.
        stubs: write a typed Python module for the object instead.
        disassemble: show the code of programs and functions instead.
        programs: which ones; () is all of them.
    """

    path: str
    btf: str | None = None
    format: str | None = None
    output: str | None = None
    btf_for: str | None = None
    stubs: bool = False
    sections: bool = False
    disassemble: bool = False
    programs: tuple[str, ...] = ()
