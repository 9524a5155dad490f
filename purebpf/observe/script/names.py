"""`LocalNames`: names of addresses, users and times on this machine."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from purebpf.loader.maps.map import Map
from purebpf.observe.script.cgroups import cgroup_paths
from purebpf.observe.script.walked_stacks import UserStackNames
from purebpf.results.model.stack_end import CUT
from purebpf.symbols.frame import Frame, Unknown
from purebpf.syscall import host_clock

if TYPE_CHECKING:
    from purebpf.observe.symbols.symbolizer import Symbolizer

__all__ = ["LocalNames"]


class LocalNames:
    """Names for the values of a script.

    Args:
        stacks: the map of kernel stacks, if the script has any.
        user_stacks: knows user stacks by number, if the script has any.
    """

    def __init__(self, stacks: Map | None, user_stacks: UserStackNames | None = None) -> None:
        self._stacks, self._user_stacks = stacks, user_stacks
        self._ends: dict[int, str] = {}
        self._cgroups: dict[tuple[int, str], str] = {}
        self._boot_s = time.time() - host_clock.boottime_ns() / 1e9

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        from purebpf.observe.symbols.symbolizer import Symbolizer  # most scripts name no addresses

        return Symbolizer()

    def kernel_symbol(self, address: int) -> str:
        """Return the function of a kernel address."""
        return _name(self._symbolizer.kernel([address])[0], address)

    def user_symbol(self, pid: int, address: int) -> str:
        """Return the function of an address in a process."""
        return _name(self._symbolizer.user(pid, [address])[0], address)

    def kernel_stack(self, number: int, limit: int, mode: str = "bpftrace") -> str:
        """Return a stack as text: an empty line, then a line for each frame."""
        addresses = self._addresses(number, limit)
        if mode == "raw":
            return _raw(addresses)
        return _lines(addresses, self._symbolizer.kernel_stack(addresses), mode)

    def user_stack(self, number: int, limit: int, mode: str = "bpftrace") -> str:
        """Return a stack of a process as text."""
        assert self._user_stacks is not None
        named = self._user_stacks.name(number)
        self._ends[number] = named.end
        frames = named.frames[:limit]
        if mode == "raw":
            return _raw([frame.address for frame in frames if frame.kind == "user"])
        text = _lines([frame.address for frame in frames], frames, mode)
        is_cut = named.end and len(frames) == len(named.frames)
        return f"{text}{_INDENT}[{named.end}]\n" if is_cut and mode == "bpftrace" else text

    def cut_stacks(self) -> Counter[str]:
        """Count the different user stacks that were named and lack their roots, by reason."""
        return Counter(end for end in self._ends.values() if end)

    def _addresses(self, number: int, limit: int) -> list[int]:
        if self._stacks is None or number < 0:
            return []
        data = self._stacks.get(number.to_bytes(4, "little"))
        if not isinstance(data, bytes):
            return list(data or ())[:limit]
        words = memoryview(data).cast("Q")
        return [address for address in words if address][:limit]

    def error(self, number: int) -> str:
        """Return the text of an errno."""
        return os.strerror(number)

    def signal(self, number: int) -> str:
        """Return the text of a signal, "N/A" for numbers that are none."""
        try:
            return signal.strsignal(number) or f"Unknown signal {number}"
        except ValueError:
            return f"Unknown signal {number}" if number == 0 else "N/A"

    def cgroup(self, number: int, pattern: str) -> str:
        """Return the paths of a cgroup: `unified:/system.slice`, with `;` between hierarchies."""
        if (number, pattern) not in self._cgroups:
            self._cgroups[number, pattern] = cgroup_paths(number, pattern)
        return self._cgroups[number, pattern]

    def user(self, uid: int) -> str:
        """Return the name of a user; the number if there is none."""
        import pwd

        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)

    def time(self, boot_ns: int, layout: str) -> str:
        """Return a time since boot as text; `%f` are microseconds."""
        moment = self._boot_s + boot_ns / 1e9
        layout = layout.replace("%f", f"{int(moment % 1 * 1e6):06d}")
        return time.strftime(layout, time.localtime(moment))


def _name(answer: Frame | Unknown, address: int) -> str:
    if isinstance(answer, Frame):
        return answer.name
    return f"{address:#x}" if address else "0"


def _raw(addresses: Sequence[int]) -> str:
    return "\n" + "".join(f"{address:x}\n" for address in addresses)


def _lines(addresses: Sequence[int], answers: Sequence[Frame | Unknown], mode: str) -> str:
    """Return an empty line, and a line for each frame."""
    show = {"perf": _perf, "build_id": _build_id}.get(mode, _plain)
    return "\n" + "".join(map(show, addresses, answers))


_INDENT = 8 * " "


def _is_python(answer: Frame | Unknown) -> TypeGuard[Frame]:
    return isinstance(answer, Frame) and answer.kind == "python"


def _plain(address: int, answer: Frame | Unknown) -> str:
    if _is_python(answer):
        return f"{_INDENT}{answer.name} ({answer.module}:{answer.line})\n"
    if isinstance(answer, Frame) and answer.kind == CUT:
        return f"{_INDENT}{answer.name}\n"
    name = f"{answer.name}+{answer.offset}" if isinstance(answer, Frame) else f"{address:#x}"
    return f"{_INDENT}{name}\n"


def _perf(address: int, answer: Frame | Unknown) -> str:
    if _is_python(answer):
        return f"\t0 {answer.name} ({answer.module}:{answer.line})\n"
    name = f"{answer.name}+{answer.offset}" if isinstance(answer, Frame) else f"{address:#x}"
    module = "" if answer.kind == "kernel" else f" ({answer.module or '[unknown]'})"
    return f"\t{address:x} {name}{module}\n"


def _build_id(address: int, answer: Frame | Unknown) -> str:
    if _is_python(answer):
        return f"{answer.name} ({answer.module}:{answer.line})\n"
    if not answer.build_id or answer.file_offset < 0:
        return f"{address:#x}\n"
    return f"{answer.build_id} {answer.file_offset:#x}\n"
