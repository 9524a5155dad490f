"""The kernel's types as one object needs them: CO-RE, externs, attach targets.

Everything is read at the first question: most objects ask for little of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.spec import ExternSpec, FunctionSpec, ObjectSpec

if TYPE_CHECKING:
    from purebpf.btf.types.kinds import Kind
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.load.externs import KernelExterns
    from purebpf.loader.load.kept_links import KeptLinks
    from purebpf.loader.types.btf_modules import Modules
    from purebpf.relocate.externs import ResolvedExtern
    from purebpf.relocate.linked_program import Patched

__all__ = ["KernelTypes"]


class KernelTypes(Closing):
    """The types of this kernel and its modules; closing closes the descriptors it opened.

    Args:
        spec: the object that is loaded.
        btf: match CO-RE relocations against this alone. Externs and attach targets are the
            running kernel's in any case.
    """

    def __init__(self, spec: ObjectSpec, btf: Btf | None = None) -> None:
        self._spec = spec
        self._btf = btf
        self._modules: Modules | None = None
        self._externs: KernelExterns | None = None

    def core_targets(self) -> Iterator[Btf]:
        """Return the targets of CO-RE relocations: vmlinux, then, when needed, modules."""
        if self._btf is not None:
            yield self._btf
            return
        from purebpf.loader.types.kernel_btf import kernel_btf

        yield kernel_btf()
        yield from self.modules.types().values()

    def patched(self, function: FunctionSpec) -> Patched | None:
        """Return the code of a function after CO-RE, if an earlier load left it."""
        return self._kept.patched(function) if self._btf is None else None

    def note_patched(self, function: FunctionSpec, patched: Patched) -> None:
        """Keep the code of a function after CO-RE for later loads."""
        if self._btf is None:
            self._kept.add_patched(function, patched)

    def find(self, name: str, kind: Kind) -> Sequence[int]:
        """Return the ids of vmlinux's types with a name and kind, the first at least; empty: none.

        Raises:
            NotSupportedError, FormatError: as `kernel_btf`.
        """
        if type_id := self._kept.type_id(kind, name):
            return (type_id,)
        from purebpf.loader.types.kernel_btf import kernel_btf

        type_ids = kernel_btf().find(name, kind)
        if type_ids:
            self._kept.add_type_id(kind, name, type_ids[0])
        return type_ids

    @cached_property
    def _kept(self) -> KeptLinks:
        from purebpf.loader.load.kept_links import KeptLinks

        return KeptLinks(self._spec)

    def extern(self, extern: ExternSpec) -> ResolvedExtern | None:
        """Return the kernel's symbol for an extern. Raises as `KernelExterns` does."""
        if self._externs is None:
            from purebpf.loader.load.externs import KernelExterns

            self._externs = KernelExterns(self._spec, self.modules)
        return self._externs(extern)

    @property
    def fd_array(self) -> bytes:
        """The descriptors of modules with used functions, for BPF_PROG_LOAD."""
        return self._externs.fd_array if self._externs is not None else b""

    @property
    def modules(self) -> Modules:
        """The modules of this kernel."""
        if self._modules is None:
            from purebpf.loader.types.btf_modules import Modules

            self._modules = Modules()
        return self._modules

    def close(self) -> None:
        """Keep new answers for later loads, and close the opened descriptors. Twice is harmless.

        Answers that depend on the modules of this moment are not kept.
        """
        if self._modules is not None:
            self._modules.close()
        elif "_kept" in vars(self):
            self._kept.save()
