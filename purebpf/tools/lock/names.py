"""The names of locks and of the functions that take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

from purebpf.errors import KernelError
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Frame, Unknown, is_of_tracepoint, spell_kernel_frame
from purebpf.symbols.kallsyms import addresses
from purebpf.syscall import proc
from purebpf.tools.lock.members import SlabPlace

__all__ = ["CALL_SITE", "Callers", "LockNames"]

CALL_SITE = "call site"

_SECTIONS = ("__sched_text", "__lock_text")
"""Where the kernel's linker puts the functions that wait (include/linux/sched/debug.h, __sched;
include/linux/spinlock.h, __lockfunc)."""


class Callers:
    """The functions of kernel stacks, by the numbers of the stacks.

    Args:
        read: the addresses of a stack, the innermost first; empty if it was lost.
    """

    def __init__(self, read: Callable[[int], Sequence[int]]) -> None:
        self._read = read
        self._symbolizer = Symbolizer()
        self._shown = cache(self._look_up)
        self._waiting = _waiting_functions()
        self.stack: Callable[[int], tuple[str, ...]] = cache(self._name_stack)
        """Names of the functions, without those that trace; empty if the stack was lost."""
        self.caller: Callable[[int], str] = cache(self._find_caller)
        """The first function that is not one of the locks' own."""
        self.site: Callable[[int], int] = cache(self._find_site)
        """The address in this function to which the locks' own functions return; 0: unknown."""

    def _name_stack(self, number: int) -> tuple[str, ...]:
        return tuple(spell_kernel_frame(answer) for _, answer in self._shown(number))

    def _find_caller(self, number: int) -> str:
        shown_frames = self._shown(number)
        if not shown_frames:
            return "[lost]"
        outside = (answer for place, answer in shown_frames if not self.takes_locks(place))
        return spell_kernel_frame(next(outside, shown_frames[-1][1]))

    def _find_site(self, number: int) -> int:
        places = (place for place, _ in self._shown(number))
        return next((place for place in places if not self.takes_locks(place)), 0)

    def _look_up(self, number: int) -> list[tuple[int, Frame | Unknown]]:
        places = self._read(number)
        answers = self._symbolizer.kernel_stack(places)
        pairs = zip(places, answers, strict=True)
        return [(place, answer) for place, answer in pairs if not is_of_tracepoint(answer)]

    def takes_locks(self, address: int) -> bool:
        """Return True for an address in a function that waits for locks itself."""
        return any(start <= address < end for start, end in self._waiting)


class LockNames:
    """Locks by their addresses.

    Args:
        run_queues: where each CPU has its run queue; 0: not known.
        size: bytes of one.
        member: of a lock in an object of a slab cache, of a type; "" where nothing says which.
    """

    def __init__(
        self,
        run_queues: Sequence[int],
        size: int,
        member: Callable[[SlabPlace, str], str] = lambda *_: "",
    ) -> None:
        self._run_queues = run_queues
        self._size = size
        self._member = cache(member)

    def name(
        self,
        address: int,
        kind: str,
        slab: SlabPlace | None = None,
        by_type: Callable[[], str] = str,
    ) -> tuple[str, str]:
        """Return a name for a lock and its source; the address and "" for an unknown lock.

        Args:
            address: of the lock.
            kind: of the lock.
            slab: its place in an object of a slab cache.
            by_type: the member that it is by the types of the code that takes it; or "".
        """
        for cpu, start in enumerate(self._run_queues):
            if start and start <= address < start + self._size:
                return f"run queue of CPU {cpu}", "CPU"
        if slab is not None:
            if place := self._member(slab, kind):
                return f"{place} at {address:#x}", f"slab {slab.cache}"
        elif variable := self._variable(address):
            return variable, "symbol"
        if place := by_type():
            return f"{place} at {address:#x}", CALL_SITE
        if slab is not None:
            return f"{address:#x} in {slab.cache}", f"slab {slab.cache}"
        return f"{address:#x}", ""

    @cached_property
    def _symbols(self) -> bytes:
        return _read_kallsyms()

    def _variable(self, address: int) -> str:
        """Return the name of a lock that is a whole variable, on kernels with
        CONFIG_KALLSYMS_ALL.
        """
        text, line = self._symbols, b"%016x " % address
        at = 0 if text.startswith(line) else text.find(b"\n" + line) + 1
        if not text.startswith(line, at):
            return ""
        words = text[at : at + 256].partition(b"\n")[0].split()
        return words[2].decode(errors="replace")


def _waiting_functions() -> list[tuple[int, int]]:
    """From where to where: functions that belong to waiting itself; none if they are hidden."""
    text = _read_kallsyms()
    marks = [f"{section}_{end}" for section in _SECTIONS for end in ("start", "end")]
    limits = [max(places, default=0) for places in addresses(text, marks).values()]
    return [pair for pair in zip(limits[::2], limits[1::2], strict=True) if all(pair)]


def _read_kallsyms() -> bytes:
    try:
        return proc.kallsyms()
    except KernelError:
        return b""
