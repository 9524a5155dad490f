"""The target that a program is loaded for: a function or tracepoint, by its id in BTF of vmlinux or
a module.

The verifier checks the program's arguments against it, so it is chosen at load. `SEC("fentry/f")`
means the `f` of vmlinux, else a module's; `SEC("fentry/module:f")` names the module.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from purebpf.abi.layouts import BPF_PROG_INFO
from purebpf.btf.types.kinds import Kind
from purebpf.errors import NotSupportedError
from purebpf.spec import ProgramSpec
from purebpf.syscall import bpf
from purebpf.syscall.command import address_of
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.programs.program import Program
    from purebpf.loader.types.btf_modules import Modules

__all__ = ["AttachTarget", "attach_target", "function_of", "function_target", "main_function"]

_FUNC_INFO = struct.Struct("=II")
"""struct bpf_func_info: where, and the type."""
_TRACEPOINT = "btf_trace_"
_VMLINUX = "vmlinux"


class AttachTarget(NamedTuple):
    """A type's id, and the descriptor of its owner: a module's BTF (0: vmlinux) or a program."""

    type_id: int
    btf_fd: int


class TargetTypes(Protocol):
    """The types that programs are loaded for."""

    def find(self, name: str, kind: Kind) -> Sequence[int]:
        """Return the ids of vmlinux's types with a name and kind; empty: there is none."""

    @property
    def modules(self) -> Modules:
        """The modules, which keep the descriptor; asked when needed."""


def attach_target(program: ProgramSpec, types: TargetTypes) -> AttachTarget:
    """The target of a program that needs one.

    A program for many functions has no type: it only names the module, `module:pattern`.

    Raises:
        NotSupportedError: no target in the section's name; none of that name here, or several.
        KernelError: EPERM, a module's without CAP_SYS_ADMIN.
    """
    section = program.definition
    assert section is not None  # it is what wants a target
    description = f"program {program.name!r}"
    if section.attach == "tracing_multi":
        module = program.attach_target.rpartition(":")[0]
        return AttachTarget(0, types.modules.descriptor(module) if module else 0)
    if section.attach == "freplace":
        reason = (
            "target required: the program that has the function: load(..., "
            f"targets={{{program.name!r}: program}})"
        )
        raise NotSupportedError(description, reason)
    if not program.attach_target:
        reason = f"section {program.section!r} does not name a target, which the verifier needs"
        raise NotSupportedError(description, reason)
    module, _, function = program.attach_target.rpartition(":")
    name = f"{section.btf_prefix}{function}"
    kind = Kind.TYPEDEF if section.btf_prefix == _TRACEPOINT else Kind.FUNC
    if module in ("", _VMLINUX) and (type_ids := types.find(name, kind)):
        return AttachTarget(type_ids[0], 0)
    candidates = types.modules.find(name, kind)
    others = [candidate for candidate in candidates if module in ("", candidate.module)]
    if len(others) == 1:
        return AttachTarget(others[0].type_id, types.modules.descriptor(others[0].module))
    word = "tracepoint" if kind is Kind.TYPEDEF else "function"
    if others:
        prefix = f"{section.prefix}/{others[0].module}"
        names = ", ".join(candidate.module for candidate in others)
        reason = (
            f"modules {names} each have a {word} {function!r}; name the module: {prefix}:{function}"
        )
        raise NotSupportedError(description, reason)
    kernel_part = f"module {module!r}" if module else "this kernel"
    reason = f"{kernel_part} does not have {word} {function!r} ({name} is not in its BTF)"
    if not module and (similar := _similar(section.btf_prefix or "", function, kind)):
        reason += f"; similar: {', '.join(similar)}"
    raise NotSupportedError(description, reason)


def _similar(prefix: str, function: str, kind: Kind) -> list[str]:
    """Targets in vmlinux that are spelled alike; of functions, those that begin alike."""
    import re
    from difflib import get_close_matches

    from purebpf.loader.types.kernel_btf import kernel_btf

    btf = kernel_btf()
    start = "" if prefix else re.escape(function[:2])
    pattern = rf"(?<=\0){prefix}({start}\w+)(?=\0)".encode()
    names = [name.decode() for name in re.findall(pattern, btf.data)]
    close = get_close_matches(function, names, n=6)
    return [name for name in close if btf.find(prefix + name, kind)][:3]


def function_target(program: ProgramSpec, target: Program) -> AttachTarget:
    """The function of a loaded program that `program` replaces or watches.

    Linux 5.5 (commit 5b92a28aae4d); to replace, 5.6 (commit be8704ff07d2).

    Raises:
        NotSupportedError: `program` says no function, or `target` has none of that name or no BTF.
        KernelError: EPERM, its BTF may not be read (CAP_SYS_ADMIN).
        ValueError: `target` is closed.
    """
    description = f"program {program.name!r}"
    function = program.attach_target
    if not function:
        raise NotSupportedError(
            description, f"section {program.section!r} does not name a function of {target.name!r}"
        )
    return AttachTarget(function_of(target, function, description), target.fileno())


def main_function(target: Program) -> str:
    """The whole name of the function that a loaded program begins with; its info has 15 characters.

    Raises:
        NotSupportedError: the program has no BTF.
        KernelError: EPERM, its info may not be read.
    """
    from purebpf.loader.types.map_btf import read_btf

    number = target.info.btf_id
    if number:
        records = bytearray(_FUNC_INFO.size)
        asked = {"nr_func_info": 1, "func_info_rec_size": len(records)}
        info = BPF_PROG_INFO.pack(**asked, func_info=address_of(records))
        bpf.obj_get_info_by_fd(target.fileno(), info)
        _, type_id = _FUNC_INFO.unpack(records)
        if type_id:
            return read_btf(number).name(type_id)
    raise NotSupportedError(
        f"program {target.name!r}", "it does not say its functions: compile it with -g"
    )


def function_of(target: Program, function: str, description: str) -> int:
    """The id of a function in the BTF of a loaded program; raises as `function_target`."""
    from purebpf.loader.types.map_btf import read_btf

    number = target.info.btf_id
    if not number:
        raise NotSupportedError(
            description, f"program {target.name!r} does not have BTF: compile it with -g"
        )
    btf = read_btf(number)
    if type_ids := btf.find(function, Kind.FUNC):
        return type_ids[0]
    from difflib import get_close_matches

    names = sorted(
        {btf.name(type_id) for type_id in range(1, len(btf)) if btf.kind(type_id) is Kind.FUNC}
    )
    similar = ", ".join(get_close_matches(function, names) or names)
    reason = f"program {target.name!r} does not have a function {function!r}; known: {similar}"
    raise NotSupportedError(description, reason)
