"""The data that the running kernel's code touches, by its BTF.

Needs the extra `types`, x86-64 and a kernel with BTF (CONFIG_DEBUG_INFO_BTF).
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.instruments.kernel_text import KernelText
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.symbols.kallsyms import Kallsyms, addresses
from purebpf.syscall import proc
from purebpf.unwind.machine import X86_64

if TYPE_CHECKING:
    from purebpf.dataflow.btf_types import BtfTypes
    from purebpf.dataflow.kernel_code import Argument, KernelCode, Span

__all__ = ["KernelData", "has_decoder"]

_FUNCTIONS = 1 << 14
_LIMITS = ("_stext", "_etext")
_WHAT = "types of the kernel's data"


def has_decoder() -> bool:
    """Return True if the decoder of instructions is installed, the extra `types`."""
    return find_spec("iced_x86") is not None


class KernelData(Closing):
    """The code of the kernel, decoded where somebody asks.

    Functions of modules and of BPF programs are not followed: the kernel's BTF does not have them.

    Attributes:
        code: claims by address.
        types: of the kernel.

    Raises:
        ImportError: the decoder is not installed.
        NotSupportedError: the kernel has no BTF, or another machine than x86-64.
        KernelError: the kernel refused to read its code or its symbols.
    """

    def __init__(self) -> None:
        from purebpf.dataflow.btf_types import BtfTypes
        from purebpf.dataflow.kernel_code import KernelCode
        from purebpf.dataflow.kernel_scope import find_per_cpu

        if native_machine(_WHAT) is not X86_64:
            raise NotSupportedError(_WHAT, "it decodes the instructions of x86-64 only")
        text = proc.kallsyms()
        self._symbols = Kallsyms(text)
        self._find = lru_cache(_FUNCTIONS)(self._function)
        types = BtfTypes(kernel_btf())
        with ExitStack() as undo:
            reader = undo.enter_context(KernelText())
            limits = [max(places, default=0) for places in addresses(text, _LIMITS).values()]
            per_cpu = None
            if all(limits):
                start, end = limits
                per_cpu = find_per_cpu(types, reader.read(start, end - start), start)
            self.types: BtfTypes = types
            self.code: KernelCode = KernelCode(types, self._find, reader.read, per_cpu)
            self._closing = undo.pop_all()

    def argument(self, address: int) -> Argument | None:
        """Return the first argument of the call that returns to an address; None: unknown."""
        return self.code.argument(address)

    def _function(self, address: int) -> Span | None:
        from purebpf.dataflow.kernel_code import Span

        symbol, span = self._symbols.find(address), self._symbols.span(address)
        if symbol is None or span is None or symbol.module:
            return None
        return Span(symbol.start, span[1], symbol.name)

    def close(self) -> None:
        """Unload; again is harmless."""
        self._closing.close()
