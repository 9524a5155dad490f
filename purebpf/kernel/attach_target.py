"""What a program is made for: a function or tracepoint, by its id in BTF of vmlinux or a module.

The verifier checks the program's arguments against it, so it is chosen at load. `SEC("fentry/f")`
means the `f` of vmlinux, else that of a module; `SEC("fentry/module:f")` says which module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from purebpf.abi.sections import SecDef
from purebpf.btf.types import Kind
from purebpf.errors import NotSupportedError
from purebpf.kernel.btf import kernel_btf
from purebpf.spec import ProgramSpec

if TYPE_CHECKING:
    from purebpf.kernel.btf_modules import Modules

__all__ = ["AttachTarget", "attach_target"]

_TRACEPOINT = "btf_trace_"
_VMLINUX = "vmlinux"


class AttachTarget(NamedTuple):
    """A type's id, and a descriptor of its module's BTF: 0 is vmlinux."""

    type_id: int
    btf_fd: int


def attach_target(program: ProgramSpec, section: SecDef, modules: Modules) -> AttachTarget:
    """The target of a program of `section`, whose descriptor `modules` keeps.

    Raises:
        NotSupportedError: no target in the section's name; none of that name here, or several.
        KernelError: EPERM, a module's without CAP_SYS_ADMIN.
    """
    what = f"program {program.name!r}"
    if section.attach == "freplace":
        raise NotSupportedError(what, "purebpf does not replace functions of programs yet")
    if not program.attach_target:
        reason = f"{program.section!r} says no target, and the verifier needs one to check it"
        raise NotSupportedError(what, reason)
    module, _, function = program.attach_target.rpartition(":")
    name = f"{section.btf_prefix}{function}"
    kind = Kind.TYPEDEF if section.btf_prefix == _TRACEPOINT else Kind.FUNC
    if module in ("", _VMLINUX) and (found := kernel_btf().find(name, kind)):
        return AttachTarget(found[0], 0)
    others = [each for each in modules.find(name, kind) if module in ("", each.module)]
    if len(others) == 1:
        return AttachTarget(others[0].type_id, modules.descriptor(others[0].module))
    word = "tracepoint" if kind is Kind.TYPEDEF else "function"
    if others:
        prefix = f"{section.prefix}/{others[0].module}"
        names = ", ".join(each.module for each in others)
        reason = f"modules {names} each have a {word} {function!r}; say which: {prefix}:{function}"
        raise NotSupportedError(what, reason)
    place = f"module {module!r}" if module else "this kernel"
    reason = f"{place} has no {word} {function!r} ({name} is not in its BTF)"
    raise NotSupportedError(what, reason)
