"""Kernel addresses by name, from /proc/kallsyms, or its stored part, read at the first question."""

from __future__ import annotations

import time

from purebpf.errors import KernelError, errno_name
from purebpf.loader.host.backoff import Retries
from purebpf.observe.symbols.core_symbols import CoreSymbols
from purebpf.symbols.demangle import demangle
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.intervals import RangeMap
from purebpf.symbols.kallsyms import Kallsyms
from purebpf.syscall import bpf, proc

__all__ = ["KernelSymbols"]

_BPF = "bpf"
_KEEP_FUNCTIONS = 1 << 13
_LOOK_S = 1.0
"""How often to ask whether modules or programs were loaded."""


class KernelSymbols:
    """The functions of this kernel, its modules and its BPF programs.

    Addresses need CAP_SYSLOG, unless kernel.kptr_restrict is 0.

    Attributes:
        with_addresses: False: as in `Symbolizer`, for the kernel's own functions.
    """

    def __init__(self) -> None:
        self.with_addresses = True
        self._functions: RangeMap[Frame] = RangeMap()
        self._table: Kallsyms | None = None
        self._was_read = self._was_used = False
        self._is_current = False  # also of what modules and programs there are
        self._core = CoreSymbols()
        self._loaded = _LoadedCode()
        self._next_look = 0.0
        self._errno = 0
        self._retries = Retries()

    def resolve(self, address: int, back: int) -> Frame | Unknown:
        """The function of an address, looked up `back` bytes before it."""
        function = None if self.with_addresses else self._functions.find(address - back)
        return function or self._look_up(address, back)

    def _look_up(self, address: int, back: int) -> Frame | Unknown:
        table = self._table or self._open()
        self._was_read = self._was_used = table is not None
        if table is None:
            return _unknown(Reason.KERNEL_UNREADABLE, address, errno_name(self._errno))
        if table.hidden:
            return _unknown(Reason.KERNEL_HIDDEN, address)
        symbol = table.find(address - back)
        if (not self._is_current and (symbol is None or symbol.module)) or (
            symbol is None and self._retries.due(proc.KALLSYMS)  # a module or program loaded since
        ):
            table = self._read() or table
            symbol = table.find(address - back)
        if symbol is None:
            return _unknown(Reason.NO_KERNEL_FUNCTION, address)
        module = f"[{_BPF}]" if symbol.module == _BPF else symbol.module or "kernel"
        name, offset = demangle(symbol.name), address - symbol.start
        span = None if self.with_addresses or symbol.module else table.span(address - back)
        if span is None:
            return Frame(name, offset, module, Address(address), "kernel")
        frame = Frame(name, offset, module, Address(0), "kernel")
        if len(self._functions) < _KEEP_FUNCTIONS:
            self._functions.add(*span, frame)
        return frame

    def refresh(self) -> bool:
        """Check if modules or programs were loaded: the table is read again for the next of them.

        Their addresses have had no symbol so far, or the symbol of the program before them in
        memory, which the file does not end. It looks once a second at most.
        """
        if not self._was_read or time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + _LOOK_S
        if not self._loaded.has_changed():
            return False
        self._is_current = False
        return True

    def rest(self) -> None:
        """Drop the text, 5 MB, if nothing was looked up there since the last call of this.

        If only the stored part is in memory: reading that takes 2 to 6 ms.
        """
        if not (self._is_current or self._was_used) and self._core.is_kept:
            self._table = None
        self._was_used = False

    def _open(self) -> Kallsyms | None:
        core = self._core.load()
        if core is None:
            table = self._read()
            if table is not None and not table.hidden:
                self._core.keep(table.core)
            return table
        self._table = Kallsyms(core)
        return self._table

    def _read(self) -> Kallsyms | None:
        self._loaded.has_changed()  # what is loaded while the file is read is a change
        try:
            self._table = Kallsyms(proc.kallsyms())
            self._is_current = True
        except KernelError as error:
            self._errno = error.errno or 0
        return self._table


def _unknown(reason: Reason, address: int, detail: str = "") -> Unknown:
    return Unknown(reason, "kernel", Address(address), "kernel", detail)


class _LoadedCode:
    """The loaded modules and BPF programs: the owners of addresses that were not in use before."""

    def __init__(self) -> None:
        self._modules = b""
        self._newest_program = 0

    def has_changed(self) -> bool:
        """Return True if anything was loaded since the last call.

        Programs are seen with CAP_SYS_ADMIN or CAP_BPF only (BPF_PROG_GET_NEXT_ID).
        """
        before = self._modules, self._newest_program
        self._modules = proc.modules()
        try:
            while True:  # ends with ENOENT
                self._newest_program = bpf.prog_get_next_id(self._newest_program)
        except KernelError:
            pass
        return before != (self._modules, self._newest_program)
