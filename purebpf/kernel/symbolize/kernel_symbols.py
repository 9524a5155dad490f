"""Kernel addresses by name, from /proc/kallsyms, which is read at the first question."""

from __future__ import annotations

from purebpf.errors import KernelError, errno_name
from purebpf.kernel.host.backoff import Retries
from purebpf.symbols.demangle import demangle
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.kallsyms import Kallsyms
from purebpf.syscall import proc

__all__ = ["KernelSymbols"]

_BPF = "bpf"


class KernelSymbols:
    """The functions of this kernel, its modules and its BPF programs.

    Addresses need CAP_SYSLOG, unless kernel.kptr_restrict is 0.
    """

    def __init__(self) -> None:
        self._table: Kallsyms | None = None
        self._errno = 0
        self._retries = Retries()

    def resolve(self, address: int, back: int) -> Frame | Unknown:
        """The function of an address, looked up `back` bytes before it."""
        table = self._table or self._read()
        if table is None:
            return _unknown(Reason.KERNEL_UNREADABLE, address, errno_name(self._errno))
        if table.hidden:
            return _unknown(Reason.KERNEL_HIDDEN, address)
        symbol = table.find(address - back)
        if symbol is None and self._retries.due(proc.KALLSYMS):  # a module or program loaded since
            table = self._read() or table
            symbol = table.find(address - back)
        if symbol is None:
            return _unknown(Reason.NO_KERNEL_FUNCTION, address)
        module = f"[{_BPF}]" if symbol.module == _BPF else symbol.module or "kernel"
        name, offset = demangle(symbol.name), address - symbol.start
        return Frame(name, offset, module, Address(address), "kernel")

    def _read(self) -> Kallsyms | None:
        try:
            self._table = Kallsyms(proc.kallsyms())
        except KernelError as error:
            self._errno = error.errno or 0
        return self._table


def _unknown(reason: Reason, address: int, detail: str = "") -> Unknown:
    return Unknown(reason, "kernel", Address(address), "kernel", detail)
