"""`LocalNames`: names of addresses, users and times on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cached_property

from purebpf.loader.maps.map import Map
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["LocalNames"]


class LocalNames:
    """Names for the values of a script.

    Args:
        stacks: the map of stacks, if the script has stacks.
    """

    def __init__(self, stacks: Map | None) -> None:
        self._stacks = stacks
        self._boot_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        return Symbolizer()

    def kernel_symbol(self, address: int) -> str:
        """Return the function of a kernel address."""
        return _name(self._symbolizer.kernel([address])[0], address)

    def user_symbol(self, pid: int, address: int) -> str:
        """Return the function of an address in a process."""
        return _name(self._symbolizer.user(pid, [address])[0], address)

    def kernel_stack(self, number: int, limit: int) -> str:
        """Return a stack as text: an empty line, then a line for each frame."""
        addresses = self._addresses(number, limit)
        return _lines(addresses, self._symbolizer.kernel_stack(addresses))

    def user_stack(self, number: int, pid: int, limit: int) -> str:
        """Return a stack of a process as text."""
        addresses = self._addresses(number, limit)
        return _lines(addresses, self._symbolizer.user_stack(pid, addresses))

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
    return answer.name if isinstance(answer, Frame) else f"{address:#x}"


def _lines(addresses: Sequence[int], answers: Sequence[Frame | Unknown]) -> str:
    lines = "".join(
        f"    {answer.name}+{answer.offset}\n"
        if isinstance(answer, Frame)
        else f"    {address:#x}\n"
        for address, answer in zip(addresses, answers, strict=False)
    )
    return f"\n{lines}"
