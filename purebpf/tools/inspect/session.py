"""The live part of `purebpf inspect`: the object, and this kernel's types, symbols and settings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from purebpf.abi.instruction import INSN_SIZE
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, essential_name
from purebpf.elf import read_object
from purebpf.errors import KernelError, NotSupportedError, SchemaError
from purebpf.files.input_file import open_seekable
from purebpf.loader.load.kernel_types import KernelTypes
from purebpf.objects.packed import MAGIC, unpack
from purebpf.relocate.kconfig import KCONFIG, PREFIX, settings
from purebpf.spec import ExternSpec, ObjectSpec
from purebpf.symbols.kallsyms import addresses
from purebpf.syscall import proc
from purebpf.tools.inspect.model import Report, describe
from purebpf.tools.inspect.request import InspectOptions
from purebpf.wire.perf_data import MAGIC as PERF_MAGIC

if TYPE_CHECKING:  # construct and pyelftools take 24 and 28 ms to import
    from purebpf.tools.inspect.perf_data import PerfDataReport
    from purebpf.tools.inspect.sections import ElfReport

__all__ = [
    "code",
    "few_types",
    "inspect",
    "inspect_perf_data",
    "inspect_sections",
    "is_perf_data",
    "read",
]


def inspect(options: InspectOptions) -> Report:
    """Describe the object that the options name.

    Raises:
        KernelError: the object or the file with types cannot be read.
        FormatError, LinkError, NotSupportedError: as `purebpf.read_object`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        spec = read(options.path)
    notes = [str(warning.message) for warning in caught]
    btf = _types(options.btf) if options.btf is not None else None
    with KernelTypes(spec, btf) as types:
        targets: list[Btf] | None = None
        try:
            targets = list(types.core_targets()) if spec.btf is not None else []
        except NotSupportedError as error:
            notes.append(f"{error}; use --btf FILE for another kernel")
        externs = {} if btf is not None else _externs(spec, targets)
    return describe(spec, targets, externs=externs, notes=notes)


def read(path: str) -> ObjectSpec:
    """Read an object file, or a packed spec as purebpf ships them.

    Raises:
        KernelError: it cannot be read.
        FormatError, LinkError, NotSupportedError: as `purebpf.read_object`.
    """
    try:
        with open(path, "rb", opener=open_seekable) as file:
            if file.read(len(MAGIC)) == MAGIC:
                return unpack(MAGIC + file.read(), path)
            file.seek(0)
            return read_object(file)
    except OSError as error:
        raise KernelError(f"open({path})", error.errno or 0) from None


def few_types(path: str, kernel: str) -> bytes:
    """The types in the file `kernel` that the CO-RE relocations of an object look at, as BTF.

    Raises:
        KernelError: the object or the file with types cannot be read.
        FormatError, LinkError, NotSupportedError: as `purebpf.read_object`.
        CoreRelocationError: candidates that disagree.
    """
    from purebpf.btf.core.minimal import Wanted, minimise

    spec = read(path)
    relocations = [one for f in spec.functions.values() for one in f.core_relocations]
    wanted = [Wanted(spec.btf, relocations)] if spec.btf is not None else []
    return minimise(_types(kernel), wanted)


def code(path: str, names: Sequence[str]) -> list[str]:
    """The code of these programs and functions of an object, or of all, each below its name.

    Raises:
        KernelError: the object cannot be read.
        FormatError, LinkError, NotSupportedError: as `purebpf.read_object`.
        SchemaError: no program or function is called so; lists similar names.
    """
    from purebpf.asm.listing import disassemble

    spec = read(path)
    sections = {name: program.section for name, program in spec.programs.items()}
    called = spec.functions.keys() - {program.function for program in spec.programs.values()}
    all_names = [*spec.programs, *(name for name in spec.functions if name in called)]
    listings = []
    for name in names or all_names:
        try:
            text = disassemble(spec, name)
        except KeyError as error:
            raise SchemaError(error.args[0]) from None
        key = spec.programs[name].function if name in spec.programs else name
        count = len(spec.functions[key].code) // INSN_SIZE
        where = f"{sections[name]}, " if name in sections else ""
        listings.append(f"{name}: {where}{count} instructions\n{text}\n")
    return listings


def is_perf_data(path: str) -> bool:
    """Return True if a file begins as perf.data does; False also for a file that cannot be read."""
    try:
        with open(path, "rb", opener=open_seekable) as file:
            return file.read(len(PERF_MAGIC)) == PERF_MAGIC
    except OSError:
        return False


def inspect_perf_data(path: str) -> PerfDataReport:
    """Describe a perf.data file.

    Raises:
        KernelError: it cannot be read.
        FormatError, NotSupportedError: as `describe_perf_data`.
    """
    from purebpf.tools.inspect.perf_data import describe_perf_data

    try:
        with open(path, "rb", opener=open_seekable) as file:
            fd = file.fileno()
            size = os.fstat(fd).st_size
            return describe_perf_data(lambda at, length: os.pread(fd, length, at), size, path)
    except OSError as error:
        raise KernelError(f"read({path})", error.errno or 0) from None


def inspect_sections(path: str) -> ElfReport:
    """Describe the structure of an ELF file.

    Raises:
        KernelError: it cannot be read.
        FormatError: it is not an ELF file, or is damaged.
    """
    from purebpf.tools.inspect.sections import describe_elf

    try:
        with open(path, "rb", opener=open_seekable) as file:
            return describe_elf(file, path)
    except OSError as error:
        raise KernelError(f"read({path})", error.errno or 0) from None


def _types(path: str) -> Btf:
    from purebpf.loader.types.btf_file import read_btf_file

    try:
        return read_btf_file(path)
    except OSError as error:
        raise KernelError(f"open({path})", error.errno or 0) from None


def _externs(spec: ObjectSpec, targets: list[Btf] | None) -> dict[str, str]:
    """Return the kernel's answer to each extern, in words."""
    if not spec.externs:
        return {}
    values = _configure(spec)
    symbols = _symbols(spec)
    return {
        name: values.get(name, "")
        if extern.section == KCONFIG
        else symbols.get(name) or _find_type(spec, extern, targets or [])
        for name, extern in spec.externs.items()
    }


def _configure(spec: ObjectSpec) -> dict[str, str]:
    """Return the kernel's settings; only a process that may load can see libbpf's virtual
    settings.
    """
    wanted = {name for name, extern in spec.externs.items() if extern.section == KCONFIG}
    answers = dict.fromkeys(wanted, "resolved by the kernel at load time")
    configs = {name for name in wanted if name.startswith(PREFIX)}
    if configs:
        text = proc.kernel_config()
        config_values = settings(text or "", configs)
        absent = (
            "not set" if text is not None else "unknown: the kernel does not show its configuration"
        )
        answers |= {name: config_values.get(name, absent) for name in configs}
    return answers


def _symbols(spec: ObjectSpec) -> dict[str, str]:
    """Untyped symbols, which only /proc/kallsyms has; addresses do not matter here."""
    assert spec.btf is not None  # externs come from BTF
    names = [
        name
        for name, extern in spec.externs.items()
        if extern.section != KCONFIG
        and spec.btf.kind(extern.type_id) is not Kind.FUNC
        and not spec.btf.resolve(extern.type_id)
    ]
    if not names:
        return {}
    try:
        by_name = addresses(proc.kallsyms(), names)
    except KernelError:
        return dict.fromkeys(names, f"unknown: {proc.KALLSYMS} cannot be read")
    return {name: f"in {proc.KALLSYMS}" if by_name[name] else "missing" for name in names}


def _find_type(spec: ObjectSpec, extern: ExternSpec, targets: list[Btf]) -> str:
    assert spec.btf is not None
    is_function = spec.btf.kind(extern.type_id) is Kind.FUNC
    name = essential_name(extern.name) if is_function else extern.name
    for target in targets:
        if target.find(name, Kind.FUNC if is_function else Kind.VAR):
            return f"in {target.source}"
    return "missing"
