"""What loading one object asks of the kernel's types: CO-RE, externs, attach targets.

Everything is read at the first question: most objects ask for little of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.kernel.types.kernel_btf import kernel_btf
from purebpf.spec import ExternSpec, ObjectSpec

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.kernel.load.externs import KernelExterns
    from purebpf.kernel.types.btf_modules import Modules
    from purebpf.relocate.externs import Found

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

    def core_targets(self) -> Iterator[Btf]:
        """What CO-RE relocations are matched against: vmlinux, then, when asked for, modules."""
        if self._btf is not None:
            yield self._btf
            return
        yield kernel_btf()
        yield from self.modules.types().values()

    def extern(self, extern: ExternSpec) -> Found | None:
        """What the kernel has for an extern. Raises as `KernelExterns` does."""
        return self._externs(extern)

    @property
    def fd_array(self) -> bytes:
        """The descriptors of modules whose functions were found, for BPF_PROG_LOAD."""
        return self._externs.fd_array if "_externs" in self.__dict__ else b""

    @cached_property
    def modules(self) -> Modules:
        """The modules of this kernel."""
        from purebpf.kernel.types.btf_modules import Modules

        return Modules()

    @cached_property
    def _externs(self) -> KernelExterns:
        from purebpf.kernel.load.externs import KernelExterns

        return KernelExterns(self._spec, self.modules)

    def close(self) -> None:
        """Close what was opened. Twice is harmless."""
        if "modules" in self.__dict__:
            self.modules.close()
