"""Monitors that Java threads wait to enter, and who owns them: read without stopping anything.

A thread that blocks at `synchronized` names the monitor it wants (_current_pending_monitor), the
monitor its object and its owner, the object its class. JDK 17 to 21; in other versions a field may
be missing, and the result is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from purebpf.runtimes.cpython.memory import Memory, UnreadableError
from purebpf.runtimes.hotspot.vm_structs import VmField, read_vm_structs
from purebpf.tuples import NamedTuple

__all__ = ["WantedMonitor", "wanted_monitors"]

_MOST_THREADS = 5000
_CLASSES = frozenset(
    {
        *("ThreadsSMRSupport", "ThreadsList", "Thread", "JavaThread", "OSThread", "ObjectMonitor"),
        *("oopDesc", "Klass", "Symbol", "CompressedKlassPointers", "WeakHandle", "OopHandle"),
    }
)
_LONGEST_NAME = 300
_HEADER = 8
"""Of an object, its mark; the class is behind it."""


class WantedMonitor(NamedTuple):
    """A thread that waits for a monitor.

    Attributes:
        tid: the thread, as gettid(2) has it.
        monitor: its address.
        class_name: the class of its object, `shop.OrderBook`; "" if it could not be read.
        owner: the thread that is inside; 0: not known.
    """

    tid: int
    monitor: int
    class_name: str
    owner: int


def wanted_monitors(memory: Memory, symbols: Mapping[str, int]) -> list[WantedMonitor]:
    """The threads that wait to enter a monitor.

    Args:
        memory: the process's.
        symbols: addresses of `vm_structs.EXPORTS` in it.
    """
    try:
        fields = read_vm_structs(memory, symbols, lambda kind, _: kind in _CLASSES)
        reader = _Reader(memory, fields)
        tids = dict(reader.threads())
    except (KeyError, UnreadableError):
        return []
    wanted = []
    for thread, tid in tids.items():
        try:
            monitor = reader.pointer(thread, "_current_pending_monitor", "JavaThread", "Thread")
            if monitor:
                owner = reader.owner_of(monitor, tids)
                wanted.append(WantedMonitor(tid, monitor, reader.class_of(monitor), owner))
        except (KeyError, UnreadableError):
            continue
    return wanted


class _Reader:
    def __init__(self, memory: Memory, fields: Mapping[tuple[str, str], VmField]) -> None:
        self._memory = memory
        self._fields = fields

    def _field(self, name: str, *kinds: str) -> VmField:
        for kind in kinds:
            field = self._fields.get((kind, name))
            if field is not None:
                return field
        raise KeyError(name)

    def pointer(self, at: int, name: str, *kinds: str) -> int:
        """A field of an object of one of these classes."""
        return self._memory.number(at + self._field(name, *kinds).offset)

    def threads(self) -> Iterator[tuple[int, int]]:
        """The addresses of Java's threads, with their thread IDs."""
        listed = self._memory.number(self._field("_java_thread_list", "ThreadsSMRSupport").address)
        length = self._memory.number(listed + self._field("_length", "ThreadsList").offset, 4)
        array = self.pointer(listed, "_threads", "ThreadsList")
        for number in range(min(length, _MOST_THREADS)):
            thread = self._memory.number(array + 8 * number)
            system = self.pointer(thread, "_osthread", "JavaThread", "Thread")
            at = system + self._field("_thread_id", "OSThread").offset
            yield thread, self._memory.number(at, 4)

    def owner_of(self, monitor: int, tids: Mapping[int, int]) -> int:
        """Return the thread inside of a monitor, or 0 if it is unknown.

        The owner of a monitor that was a lock on the stack first is an address on that stack.
        """
        owner = self.pointer(monitor, "_owner", "ObjectMonitor")
        if owner in tids or not owner:
            return tids.get(owner, 0)
        for thread, tid in tids.items():
            try:
                base = self.pointer(thread, "_stack_base", "JavaThread", "Thread")
                size = self.pointer(thread, "_stack_size", "JavaThread", "Thread")
            except (KeyError, UnreadableError):
                return 0
            if base - size <= owner < base:
                return tid
        return 0

    def class_of(self, monitor: int) -> str:
        """The name of the class of a monitor's object; "" if it could not be read."""
        try:
            handle = self.pointer(monitor, "_object", "ObjectMonitor")
            return self._class_name(self._memory.number(handle))
        except (KeyError, UnreadableError):
            return ""

    def _class_name(self, instance: int) -> str:
        for klass in self._klasses(instance):
            try:
                symbol = self.pointer(klass, "_name", "Klass")
                length = self._memory.number(symbol + self._field("_length", "Symbol").offset, 2)
                body = symbol + self._field("_body[0]", "Symbol").offset
                raw = self._memory.bytes(body, min(length, _LONGEST_NAME))
            except UnreadableError:
                continue
            name = raw.decode("utf-8", "replace")
            if name and name.isprintable():
                return name.replace("/", ".")
        return ""

    def _klasses(self, instance: int) -> Iterator[int]:
        """Yield the places where its class may be: compressed, the default, or not."""
        narrow = self._memory.number(instance + _HEADER, 4)
        base = self._field("_narrow_klass._base", "CompressedKlassPointers")
        shift = self._field("_narrow_klass._shift", "CompressedKlassPointers")
        yield self._memory.number(base.address) + (narrow << self._memory.number(shift.address, 4))
        yield self._memory.number(instance + _HEADER)
