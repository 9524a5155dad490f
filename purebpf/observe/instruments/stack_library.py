"""`StackLibrary`: bpf_src/stack_library.bpf.c, linked into somebody else's programs."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, Self

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.loader.features import features
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.call_graph import (
    CallGraph,
    load_walking,
    mode_of,
    open_walking,
    read_python,
)
from purebpf.observe.instruments.library_link import (
    LINKED_PREFIX,
    PREFIX,
    library_spec,
    link_library,
    without_lookups,
)
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.unwind.stack_numbers import as_completed
from purebpf.observe.unwind.user_stacks import Trace
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    import socket

    from purebpf.loader.load.object import Object
    from purebpf.loader.maps.map import Map
    from purebpf.loader.programs.link import Link
    from purebpf.loader.programs.program import Program
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.observe.unwind.user_stacks import Finished, UserStacks
    from purebpf.spec import ObjectSpec

__all__ = ["FIRST_STACK", "LibraryPart", "OwnedTrace", "StackLibrary"]

FIRST_STACK = 16
"""PUREBPF_FIRST_STACK of <purebpf/stacks.h>."""
_ANY_TRACER = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
"""All types of programs that walk stacks have the same helpers for it."""
_KERNEL_BIT = 1 << 63
_OWNER_TAG = 0xFFF << 48
"""OWNER_TAG of bpf_src/include/stacks.h, in the word behind the addresses of a user stack."""
_TGID = 0xFFFFFFFF
_PAGES = 512
"""Of a ring of copies: events come in bursts, before a walk has its tables."""
_KEPT = 65536
"""Finished stacks that are remembered."""


class OwnedTrace(NamedTuple):
    """A user stack and its process, by its number in our pid namespace."""

    pid: int
    trace: Trace


_KEPT_MAPS = ("shards", "rules", "exes", "copies")
"""Maps that `_forget_earlier` leaves as they are: nothing leads to their contents afterwards."""


class HasParts(Protocol):
    """A loaded object: `purebpf.Object`, or one that another loader has loaded."""

    @property
    def maps(self) -> Mapping[str, Map]:
        """Its maps by name."""

    @property
    def globals(self) -> MutableMapping[str, Any]:
        """Its global variables by name."""

    @property
    def programs(self) -> Mapping[str, Program]:
        """Its programs by name."""

    def attach(self) -> tuple[Link, ...]:
        """Attach each program where its section says."""

    def close(self) -> None:
        """Let go of it."""


class LibraryPart(Closing):
    """The library's part of a loaded object, by the names that it has in the library.

    Args:
        loaded: the object.
        prefix: of the library's names there.
    """

    def __init__(self, loaded: HasParts, prefix: str) -> None:
        self.object = loaded
        self.maps: Mapping[str, Map] = {
            name.removeprefix(prefix): each
            for name, each in loaded.maps.items()
            if name.startswith(prefix)
        }
        self.globals: MutableMapping[str, Any] = _Globals(loaded.globals, prefix)

    def close(self) -> None:
        """Close the whole object; again is harmless."""
        self.object.close()


class _Globals(MutableMapping[str, Any]):
    """Global variables of the library."""

    def __init__(self, of_object: MutableMapping[str, Any], prefix: str) -> None:
        self._of_object = of_object
        self._prefix = prefix

    def __getitem__(self, name: str) -> Any:
        return self._of_object[self._prefix + name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._of_object[self._prefix + name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("a global variable cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        names = (name for name in self._of_object if name.startswith(self._prefix))
        return (name.removeprefix(self._prefix) for name in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _forget_earlier(part: LibraryPart, owned: ExitStack) -> None:
    """Empty the tables that an earlier reader of a loaded object left, and let none come again.

    Raises:
        NotSupportedError: another process reads the stacks of the object now.
        KernelError: a map cannot be emptied.
    """
    owned.enter_context(_only_reader(part.maps["stacks"].info.id))
    _stop_walks(part)
    for name, each in part.maps.items():
        is_ring = each.type == bpf_map_type.BPF_MAP_TYPE_RINGBUF
        if not (is_ring or name.startswith(".") or name in _KEPT_MAPS):
            each.clear()
    owned.callback(_stop_walks, part)


def _only_reader(map_id: int) -> socket.socket:
    """Return a lock, held until it is closed, even if this process is killed.

    Raises:
        NotSupportedError: another process has the lock.
    """
    import socket

    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0purebpf-stacks-{map_id}")
    except OSError as error:
        lock.close()
        if error.errno != errno.EADDRINUSE:
            raise
        problem = "another process reads the stacks of these programs; end it first"
        raise NotSupportedError("purebpf.stacks.attach_to()", problem) from None
    return lock


def _stop_walks(part: LibraryPart) -> None:
    part.globals["phase"] = False
    settle()


class StackLibrary(Closing):
    """An object with the library, from its load to `close()`: `load` or `attach` makes it.

    Attributes:
        object: the object.
        call_graph: how stacks are walked, and why not as asked.
        walking: finishes stacks that the programs could not; None with frame pointers.
        python: reads Python frames; None with frame pointers.
    """

    def __init__(
        self,
        part: LibraryPart,
        walking: UserStacks | None,
        call_graph: CallGraph,
        owned: ExitStack,
    ) -> None:
        """Take over what `owned` closes."""
        self._finished: dict[int, OwnedTrace] = {}
        self.object, self.maps, self._globals = part.object, part.maps, part.globals
        self.walking, self.call_graph = walking, call_graph
        self.python = None
        if walking is not None:
            self.python = read_python(part, walking, owned, lines=True, native=False)
        self._owned = owned.pop_all()

    @classmethod
    def load(
        cls,
        spec: ObjectSpec,
        load: Callable[[ObjectSpec], Object],
        earlier: EarlierLookup | None = None,
        *,
        call_graph: str = "auto",
        capacity: int = 16384,
        namespace: tuple[int, int] = (0, 0),
    ) -> Self:
        """Load an object that calls functions of <purebpf/stacks.h>.

        Args:
            spec: the object.
            load: puts a spec into the kernel.
            earlier: returns the mappings of a process at a time, see `UserStacks`.
            call_graph: how user stacks are walked, see `load_walking`.
            capacity: different stacks that there is room for.
            namespace: the pid namespace to number tasks in, as in `TaskFilter`.

        Raises:
            LinkError: as `link_library`.
            KernelError, NotSupportedError: the kernel refused; nothing stays open.
        """
        has_vma = features.have_helper(_ANY_TRACER, bpf_func_id.BPF_FUNC_find_vma)
        library = library_spec(capacity, namespace, finds_vma=bool(has_vma))
        library = library.set(max_depth=stack_maps.max_depth())
        if not has_vma:
            library = without_lookups(library)
        with ExitStack() as owned:
            part, walking, chosen = load_walking(
                library,
                call_graph,
                lambda configured: LibraryPart(
                    load(link_library(spec, configured, PREFIX)), PREFIX
                ),
                owned,
                earlier,
                pages=_PAGES,
                lines=True,
            )
            return cls(part, walking, chosen, owned)

    @classmethod
    def attach(cls, loaded: HasParts, earlier: EarlierLookup | None = None) -> Self:
        """Read the stacks of an object that `link_for_loaders` wrote and somebody has loaded.

        Args:
            loaded: the object, which this closes.
            earlier: as of `load`.

        Raises:
            KernelError, NotSupportedError: as `UserStacks`; nothing stays open.
        """
        with ExitStack() as owned:
            part = owned.enter_context(LibraryPart(loaded, LINKED_PREFIX))
            _forget_earlier(part, owned)
            mode = mode_of(part)
            walking = None
            if mode != "fp":
                walking = open_walking(part, mode, owned, earlier, pages=_PAGES, lines=True)
            return cls(part, walking, CallGraph(mode), owned)

    def start(self) -> None:
        """Begin: before, user_stack() gives no stacks."""
        self._globals["phase"] = True

    def stop(self) -> None:
        """End; stacks that were walked can still be read."""
        self._globals["phase"] = False
        settle()
        self.finish()

    def drain(self) -> None:
        """Finish the stacks that have come.

        Raises:
            KernelError: a table could not be filled.
        """
        if self.walking is not None:
            self.walking.drain()
            self._take(self.walking.take())
        if self.python is not None:
            self.python.drain()

    def finish(self) -> None:
        """Finish all stacks that were copied until now. Raises as `drain` does."""
        if self.walking is not None:
            self.walking.finish()
        self.drain()

    def _take(self, finished: Iterable[tuple[Finished, int]]) -> None:
        for sample, _ in finished:
            ticket, pid = (int.from_bytes(sample.key[at : at + 8], "little") for at in (0, 8))
            self._finished[ticket] = OwnedTrace(pid, as_completed(sample.trace))
        while len(self._finished) > _KEPT:
            del self._finished[next(iter(self._finished))]

    def trace(self, number: int) -> OwnedTrace | None:
        """The user stack with a number; None: it was forgotten, or is no number of a stack.

        Raises:
            KernelError: a map could not be read, or a table filled.
        """
        found = self._finished.get(number) or self._stored(number)
        if found is None:  # its copy is in a ring: it was written before the event's record
            self.finish()
            found = self._finished.get(number)
        return found

    def _stored(self, number: int) -> OwnedTrace | None:
        stack: Any = self.maps["stacks"].get(number)
        if stack is None:
            return None
        *addresses, owner = stack.addresses[: stack.depth]
        assert owner & ~_TGID == _OWNER_TAG, "each user stack ends with its owner"
        return OwnedTrace(owner & _TGID, Trace(tuple(addresses), stack.reason, stack.guessed))

    def kernel_stack(self, number: int) -> Sequence[int] | None:
        """The addresses of a kernel stack, the innermost first; None: there is no such stack.

        Raises:
            KernelError: the map could not be read.
        """
        stack: Any = self.maps["stacks"].get(number)
        return None if stack is None else tuple(stack.addresses[: stack.depth])

    @staticmethod
    def is_of_kernel(number: int) -> bool:
        """Return True for the number of a kernel stack."""
        return bool(number & _KERNEL_BIT)

    def stats(self) -> dict[str, int]:
        """Counters of the library by field, summed over the CPUs."""
        counters = ("call_stats", "stack_stats", "unwind_stats", "python_stats")
        totals: dict[str, int] = {}
        for name in counters:
            totals |= stack_maps.sum_up(self.maps[name])
        return totals

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()
