"""This kernel's symbols for the `__ksym` externs of an object.

Typed variables and kernel functions are in the BTF of vmlinux, or else of a module; untyped
variables in /proc/kallsyms, read once for all of them. Imported only for an object that has such
externs.
"""

from __future__ import annotations

from array import array

from purebpf.btf.core.rules import types_agree
from purebpf.btf.types.kinds import Func, FuncProto, Kind, Ptr, Var
from purebpf.btf.types.parse import Btf, essential_name
from purebpf.btf.types.spelling import spell
from purebpf.errors import LinkError, NotSupportedError
from purebpf.loader.types.btf_modules import Modules
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.relocate.externs import ResolvedExtern
from purebpf.spec import ExternSpec, ObjectSpec
from purebpf.symbols.kallsyms import Kallsyms, addresses
from purebpf.syscall import proc

__all__ = ["KernelExterns"]


class KernelExterns:
    """Looks externs up, each once. `modules` owns the descriptors of modules' BTF."""

    def __init__(self, spec: ObjectSpec, modules: Modules) -> None:
        assert spec.btf is not None  # externs come from BTF
        self._spec = spec
        self._btf: Btf = spec.btf
        self._modules = modules
        self._known: dict[str, ResolvedExtern | None] = {}
        self._slots: dict[str, int] = {}
        self._addresses: dict[str, set[int]] | None = None
        self._hidden = False

    def __call__(self, extern: ExternSpec) -> ResolvedExtern | None:
        """Return this kernel's symbol for an extern; None: there is none.

        Raises:
            LinkError: the kernel's symbol has another type, or several symbols have the name.
            NotSupportedError: no kernel BTF; addresses that this process may not see.
            KernelError: EPERM, for a symbol that only a module has, without CAP_SYS_ADMIN.
        """
        if extern.name not in self._known:
            self._known[extern.name] = self._find(extern)
        return self._known[extern.name]

    @property
    def fd_array(self) -> bytes:
        """Descriptors by slot, for BPF_PROG_LOAD; b"" when no function of a module is called."""
        if not self._slots:
            return b""
        return array("i", [0, *map(self._modules.descriptor, self._slots)]).tobytes()

    def _find(self, extern: ExternSpec) -> ResolvedExtern | None:
        if self._btf.kind(extern.type_id) is Kind.FUNC:
            return self._function(extern)
        if self._btf.resolve(extern.type_id) == 0:
            return self._find_untyped(extern)
        return self._variable(extern)

    def _function(self, extern: ExternSpec) -> ResolvedExtern | None:
        resolved = self._in_btf(essential_name(extern.name), Kind.FUNC)
        if resolved is None:
            return None
        module, btf, type_id = resolved
        declared, actual = self._btf.type(extern.type_id), btf.type(type_id)
        assert isinstance(declared, Func)
        assert isinstance(actual, Func)
        if not types_agree(self._btf, declared.type_id, btf, actual.type_id):
            if extern.weak:  # another version of the function: as good as none
                return None
            raise self._differs(extern, declared.type_id, btf, actual.type_id)
        if not module:
            return ResolvedExtern(type_id=type_id)
        slot = self._slots.setdefault(module, len(self._slots) + 1)
        return ResolvedExtern(type_id=type_id, btf_fd=self._modules.descriptor(module), slot=slot)

    def _variable(self, extern: ExternSpec) -> ResolvedExtern | None:
        resolved = self._in_btf(extern.name, Kind.VAR)
        if resolved is None:
            return None
        module, btf, type_id = resolved
        actual = btf.type(type_id)
        assert isinstance(actual, Var)
        declared, target = self._btf.resolve(extern.type_id), btf.resolve(actual.type_id)
        if not types_agree(self._btf, declared, btf, target):
            raise self._differs(extern, declared, btf, target)
        return ResolvedExtern(
            type_id=type_id, btf_fd=self._modules.descriptor(module) if module else 0
        )

    def _in_btf(self, name: str, kind: Kind) -> tuple[str, Btf, int] | None:
        """The module ("" for vmlinux), its types, and the id of the one with that name."""
        own = kernel_btf().find(name, kind)
        if own:
            return "", kernel_btf(), own[0]
        return next(iter(self._modules.find(name, kind)), None)

    def _differs(self, extern: ExternSpec, declared: int, btf: Btf, actual: int) -> LinkError:
        return LinkError(
            self._spec.source,
            extern.name,
            f"declared as {spell(self._btf, declared)}, but this kernel's is "
            f"{spell(btf, actual)} ({btf.source}){_explain_forward(self._btf, declared)}",
        )

    def _find_untyped(self, extern: ExternSpec) -> ResolvedExtern | None:
        if self._addresses is None:
            self._addresses = self._read_addresses()
        known_addresses = self._addresses[extern.name]
        if not known_addresses:
            return None
        # Alone, 0 is an address: per-CPU symbols of x86_64 started there until Linux 6.15 (commit
        # 9d7de2aa8b41, "x86/percpu/64: Use relative percpu offsets").
        if 0 in known_addresses and self._hidden:
            raise NotSupportedError(
                f"{self._spec.source}: address of {extern.name}",
                (
                    f"{proc.KALLSYMS} shows zeros: kernel.kptr_restrict hides addresses from a "
                    "process without CAP_SYSLOG"
                ),
            )
        if len(known_addresses) > 1:
            places = ", ".join(f"{address:#x}" for address in sorted(known_addresses))
            problem = f"several kernel symbols have this name, at {places}"
            raise LinkError(self._spec.source, extern.name, problem)
        return ResolvedExtern(address=min(known_addresses))

    def _read_addresses(self) -> dict[str, set[int]]:
        names = [
            extern.name
            for extern in self._spec.externs.values()
            if self._btf.kind(extern.type_id) is not Kind.FUNC
            and not self._btf.resolve(extern.type_id)
        ]
        text = proc.kallsyms()
        self._hidden = Kallsyms(text).hidden
        return addresses(text, names)


def _explain_forward(btf: Btf, declared: int) -> str:
    """Return advice about a parameter that points to a type which the object only declares.

    A forward declaration agrees with no struct, as in libbpf (bpf_core_types_are_compat), but both
    are spelt alike.
    """
    prototype = btf.type(declared)
    if not isinstance(prototype, FuncProto):
        return ""
    for parameter in prototype.params:
        pointer = btf.type(btf.resolve(parameter.type_id)) if parameter.type_id else None
        if isinstance(pointer, Ptr) and pointer.type_id:
            target = btf.resolve(pointer.type_id)
            if target and btf.kind(target) is Kind.FWD:
                name = spell(btf, target)
                return (
                    f". `{name};` is a forward declaration: define it, without members if none is "
                    f"used (`{name} {{}};`)"
                )
    return ""
