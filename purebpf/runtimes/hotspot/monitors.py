"""Monitors that Java threads wait to enter, and who owns them: read without stopping anything.

A thread that blocks at `synchronized` names the monitor it wants (_current_pending_monitor), the
monitor its object and its owner, the object its class. JDK 11, 17, 21 and 25; in other versions a
field may be missing, and the result is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from purebpf.runtimes.hotspot.vm_structs import VmField, read_vm_structs
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["WantedMonitor", "wanted_monitors"]

_MOST_THREADS = 5000
_CLASSES = frozenset(
    {
        *("ThreadsSMRSupport", "ThreadsList", "Threads", "Thread", "JavaThread", "OSThread"),
        *("ObjectMonitor", "LockStack", "Universe"),
        *("oopDesc", "Klass", "Symbol", "CompressedKlassPointers", "WeakHandle", "OopHandle"),
    }
)
_LONGEST_NAME = 300
_MOST_LOCKS = 8
_OWNER_IDS = ("_monitor_owner_id", "_lock_id")
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
        for thread in self._chained() if self._is_chained else self._listed():
            system = self.pointer(thread, "_osthread", "JavaThread", "Thread")
            at = system + self._field("_thread_id", "OSThread").offset
            yield thread, self._memory.number(at, 4)

    @property
    def _is_chained(self) -> bool:
        """True before JDK 12: threads form a chain, and a monitor points at its object."""
        return ("Threads", "_thread_list") in self._fields

    def _chained(self) -> Iterator[int]:
        thread = self._memory.number(self._field("_thread_list", "Threads").address)
        for _ in range(_MOST_THREADS):
            if not thread:
                return
            yield thread
            thread = self.pointer(thread, "_next", "JavaThread")

    def _listed(self) -> Iterator[int]:
        listed = self._memory.number(self._field("_java_thread_list", "ThreadsSMRSupport").address)
        length = self._memory.number(listed + self._field("_length", "ThreadsList").offset, 4)
        array = self.pointer(listed, "_threads", "ThreadsList")
        for number in range(min(length, _MOST_THREADS)):
            yield self._memory.number(array + 8 * number)

    def owner_of(self, monitor: int, tids: Mapping[int, int]) -> int:
        """Return the thread inside of a monitor, or 0 if it is unknown.

        The owner of a monitor that was a lock on the stack first is an address on that stack. JDK
        24 and later number the owners.
        """
        owner = self.pointer(monitor, "_owner", "ObjectMonitor")
        for name in _OWNER_IDS:
            if ("JavaThread", name) in self._fields:
                ids = {
                    self.pointer(thread, name, "JavaThread"): tid for thread, tid in tids.items()
                }
                return ids.get(owner, 0) or self._locker_of(monitor, tids) if owner else 0
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

    def _locker_of(self, monitor: int, tids: Mapping[int, int]) -> int:
        """Return the thread on whose lock stack the object is; 0: none has it.

        A thread that locked the object before another one wanted it is not yet told by number.
        """
        try:
            wanted = self._memory.number(self.pointer(monitor, "_object", "ObjectMonitor"))
            base = self._field("_lock_stack", "JavaThread").offset
            top = base + self._field("_top", "LockStack").offset
            first = base + self._field("_base[0]", "LockStack").offset
            for thread, tid in tids.items():
                count = (self._memory.number(thread + top, 4) - first) // 8
                held = range(min(max(count, 0), _MOST_LOCKS))
                if any(self._memory.number(thread + first + 8 * at) == wanted for at in held):
                    return tid
        except (KeyError, UnreadableError):
            pass
        return 0

    def class_of(self, monitor: int) -> str:
        """The name of the class of a monitor's object; "" if it could not be read."""
        try:
            handle = self.pointer(monitor, "_object", "ObjectMonitor")
            return self._class_name(handle if self._is_chained else self._memory.number(handle))
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
        base, shift = self._compressed("_base"), self._compressed("_shift")
        yield self._memory.number(base.address) + (narrow << self._memory.number(shift.address, 4))
        yield self._memory.number(instance + _HEADER)

    def _compressed(self, name: str) -> VmField:
        """A variable of compressed class pointers, which versions spell differently."""
        for kind, spelt in (
            ("CompressedKlassPointers", name),
            ("CompressedKlassPointers", f"_narrow_klass.{name}"),
            ("Universe", f"_narrow_klass.{name}"),
        ):
            if (kind, spelt) in self._fields:
                return self._fields[kind, spelt]
        raise KeyError(name)
