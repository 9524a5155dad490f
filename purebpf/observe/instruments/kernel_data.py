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
from purebpf.loader.types.btf_modules import Modules
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.instruments.kernel_text import KernelText
from purebpf.observe.unwind.native_machine import native_machine
from purebpf.symbols.kallsyms import Kallsyms, addresses
from purebpf.syscall import proc
from purebpf.unwind.machine import X86_64

if TYPE_CHECKING:
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

    Modules have BTF of their own. Functions of BPF programs, and of modules without BTF, are not
    followed.

    Attributes:
        core_function: returns the function of the kernel itself, not of a module, at an address.

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
        self.core_function = lru_cache(_FUNCTIONS)(self._core_function)
        types = BtfTypes(kernel_btf())
        with ExitStack() as undo:
            reader = undo.enter_context(KernelText())
            limits = [max(places, default=0) for places in addresses(text, _LIMITS).values()]
            per_cpu = None
            if all(limits):
                start, end = limits
                per_cpu = find_per_cpu(types, reader.read(start, end - start), start)
            self._read = lru_cache(_FUNCTIONS)(reader.read)
            self._core: KernelCode = KernelCode(types, self._find, self._read, per_cpu)
            self._per_cpu = per_cpu
            self._modules = undo.enter_context(Modules())
            self._by_module: dict[str, KernelCode | None] = {}
            self._closing = undo.pop_all()

    def code(self, address: int) -> KernelCode:
        """Return the code that an address is in: of the kernel itself, or of one module."""
        symbol = self._symbols.find(address)
        module = "" if symbol is None else symbol.module
        return (self._of_module(module) if module else None) or self._core

    def _core_function(self, address: int) -> Span | None:
        """Return the function of the kernel itself, not of a module, at an address."""
        symbol = self._symbols.find(address)
        return None if symbol is None or symbol.module else self._find(address)

    def read(self, address: int, size: int) -> bytes:
        """Return code, as it was when it was first read: what `code` decodes.

        Raises:
            KernelError: the kernel refused to run the program that reads.
        """
        return self._read(address, size)

    def _of_module(self, module: str) -> KernelCode | None:
        """Return the code of a module; None: it has no BTF."""
        from purebpf.dataflow.btf_types import BtfTypes
        from purebpf.dataflow.kernel_code import KernelCode

        if module not in self._by_module:
            btf = self._modules.of(module) if module.isidentifier() else None
            code = None
            if btf is not None:
                code = KernelCode(BtfTypes(btf), self._find, self._read, self._per_cpu)
            self._by_module[module] = code
        return self._by_module[module]

    def argument(self, address: int) -> Argument | None:
        """Return the first argument of the call that returns to an address; None: unknown."""
        return self.code(address - 1).argument(address)

    def _function(self, address: int) -> Span | None:
        from purebpf.dataflow.kernel_code import Span

        symbol = self._symbols.find(address)
        if symbol is None or (symbol.module and self._of_module(symbol.module) is None):
            return None
        is_core = not symbol.module
        span = self._symbols.span(address) if is_core else self._symbols.loaded_span(address)
        if span is None:
            return None
        return Span(symbol.start, span[1], symbol.name)

    def close(self) -> None:
        """Unload; again is harmless."""
        self._closing.close()
