"""Names to address ranges: functions and modules of the kernel and of processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from purebpf.errors import PurebpfError
from purebpf.observe.filters.filter_names import MachineNames
from purebpf.observe.processes import synthesized_records
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import proc
from purebpf.tools.sampleip.request import SampleIpOptions, Symbol
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import KERNEL

__all__ = ["MAX_RANGES", "IpRange", "NoSuchRangeError", "resolve"]

MAX_RANGES = 64
"""MAX_RANGES of bpf_src/sampleip.bpf.c."""


class IpRange(NamedTuple):
    """Addresses `start` to `last`, both inside, of a process; of everybody when `tgid` is 0."""

    start: int
    last: int
    tgid: int = 0


class NoSuchRangeError(PurebpfError):
    """A name without addresses, or too many ranges."""


def resolve(options: SampleIpOptions) -> tuple[IpRange, ...]:
    """All ranges that the options name.

    Raises:
        NoSuchRangeError: a function or module that is not there; more than 64 ranges.
        KernelError: /proc/kallsyms or a process's mappings may not be read.
    """
    ip_ranges = [IpRange(start, end - 1) for start, end in options.ranges]
    names = MachineNames(options.pids)
    for symbol in options.symbols:
        ip_ranges += _of_symbol(symbol, names)
    for module in options.modules:
        ip_ranges += _of_module(module, options.pids)
    if len(ip_ranges) > MAX_RANGES:
        raise NoSuchRangeError(f"{len(ip_ranges)} ranges are too many (maximum {MAX_RANGES})")
    return tuple(dict.fromkeys(ip_ranges))


def _of_symbol(symbol: Symbol, names: MachineNames) -> Iterator[IpRange]:
    try:
        ranges = names.symbol(symbol.name)
    except LookupError as error:
        raise NoSuchRangeError(str(error.args[0])) from None
    for tgid, start, last in ranges:
        if symbol.offset is None:
            yield IpRange(start, last, tgid)
        elif start + symbol.offset <= last:
            yield IpRange(start + symbol.offset, start + symbol.offset, tgid)
        else:
            raise NoSuchRangeError(
                f"{symbol.name} has {last - start + 1} bytes: {symbol.offset:#x} is past its end"
            )


def _of_module(module: str, pids: Iterable[int]) -> list[IpRange]:
    ip_ranges = []
    for mapping in synthesized_records.kernel_mappings(proc.kallsyms()):
        is_kernel = mapping.filename.startswith(KERNEL)
        file_name = mapping.filename.rpartition("/")[2].partition(".ko")[0].strip("[]")
        if module == ("kernel" if is_kernel else file_name.replace("-", "_")):
            ip_ranges.append(IpRange(mapping.addr, mapping.addr + mapping.length - 1))
    for pid in pids:
        ip_ranges += [
            IpRange(mapped.start, mapped.end - 1, pid)
            for mapped in parse_maps(proc.maps(pid) or "")
            if module in (mapped.file.path, mapped.file.path.rpartition("/")[2])
        ]
    if not ip_ranges:
        hint = "" if pids else "; files are searched in the processes that -p names"
        raise NoSuchRangeError(f"unknown module {module!r}{hint}")
    return ip_ranges
