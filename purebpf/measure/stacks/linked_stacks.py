"""`LinkedStacks`: an object of somebody else with stacks, followed, finished and named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.loader.load.object import Object
from purebpf.measure.process_watch import ProcessWatch, name_stacks
from purebpf.measure.stacks.started import drain_stacks, start_stacks
from purebpf.measure.targets import PidNamespace
from purebpf.observe.instruments.call_graph import not_copied
from purebpf.observe.instruments.stack_library import FIRST_STACK, OwnedTrace, StackLibrary
from purebpf.results import Cause, count_cause
from purebpf.symbols.frame import is_of_tracepoint
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.observe.instruments.attached_object import ProgramPlace
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.results.model.profile import Stack as Named
    from purebpf.spec import ObjectSpec
    from purebpf.symbols.address_spaces import Earlier
    from purebpf.symbols.frame import Frame, Unknown

__all__ = ["LinkedStacks", "NamedStack"]

_NAMED = 4096
_LONGEST_S = 1.0
_NO_STACK = {
    0: "no user stack: a thread of the kernel, or a process that exits",
    1: "unavailable: user_stack() ran before load() returned, or after close()",
    2: "lost: losses() has the reason",
}
_FORGOTTEN = "forgotten: thousands of other stacks came since"


class NamedStack(NamedTuple):
    """A stack with names.

    Attributes:
        frames: the innermost first.
        end: why it lacks callers, "" if it is whole.
        pid: its process; 0 of kernel stacks.
    """

    frames: tuple[Frame | Unknown, ...]
    end: str
    pid: int


class LinkedStacks(Closing):
    """Follows the processes of a loaded object, and knows the stacks that its programs walk.

    Args:
        open_library: loads the object, or finds it loaded; it gets a function that returns the
            mappings of a process at a time.
        pids: processes to read at the start; empty: all. Others are read when their stacks come.

    Raises:
        LinkError, KernelError, NotSupportedError: as `StackLibrary`; nothing stays open.
    """

    def __init__(
        self,
        open_library: Callable[[EarlierLookup], StackLibrary],
        pids: Collection[int] = (),
    ) -> None:
        with ExitStack() as stack:
            self.library = library = stack.enter_context(open_library(self._earlier))
            self._watch = stack.enter_context(ProcessWatch(library, pids))
            start_stacks(library, self._watch, pids)
            self._watch.publish_everyone()
            self._symbolizer = self._watch.make_symbolizer()
            self._owned = stack.pop_all()
        self._named = lru_cache(_NAMED)(self._name)
        self._forgotten = 0

    @classmethod
    def load(
        cls,
        spec: ObjectSpec,
        load: Callable[[ObjectSpec], Object],
        *,
        pids: Collection[int] = (),
        call_graph: str = "auto",
        capacity: int = 16384,
    ) -> Self:
        """Load an object whose programs walk stacks. Arguments and errors as `StackLibrary.load`.

        Args:
            spec: the object.
            load: puts a spec into the kernel.
            pids: see above.
            call_graph: how user stacks are walked.
            capacity: different stacks that there is room for.
        """
        open_library = partial(
            StackLibrary.load,
            spec,
            load,
            call_graph=call_graph,
            capacity=capacity,
            namespace=PidNamespace.own(),
        )
        return cls(open_library, pids)

    @classmethod
    def attach(cls, places: Iterable[ProgramPlace], pids: Collection[int] = ()) -> Self:
        """Read the stacks of programs that another loader has loaded. Errors as `open_attached`."""
        from purebpf.observe.instruments.attached_object import open_attached

        return cls(lambda earlier: StackLibrary.attach(open_attached(places), earlier), pids)

    def _earlier(self, pid: int, time_ns: int) -> Earlier | None:
        return self._watch.earlier(pid, time_ns)

    @property
    def object(self) -> Object:
        """The loaded object, if purebpf has loaded it."""
        loaded = self.library.object
        assert isinstance(loaded, Object), "another loader has loaded it"
        return loaded

    @property
    def call_graph_why(self) -> str:
        """The reason why frame pointers are followed instead of tables, or ""."""
        return self.library.call_graph.why

    def raw(self, number: int) -> Sequence[int]:
        """Return the addresses of a user stack, Python functions and all; () for no stack.

        Raises:
            KernelError: a map could not be read, or a table filled.
        """
        owned = self.library.trace(number) if number >= FIRST_STACK else None
        return () if owned is None else owned.trace.addresses

    def get_ready(self, pids: Collection[int]) -> None:
        """Build the tables of all files of processes while nothing else is to be done.

        Raises:
            KernelError: a table could not be filled.
        """
        if self.library.walking is not None:
            self.library.walking.get_ready(pids)

    @property
    def is_getting_ready(self) -> bool:
        """True if that goes on."""
        walking = self.library.walking
        return walking is not None and walking.is_getting_ready

    @property
    def fds(self) -> set[int]:
        """Readable when `drain()` is due."""
        return self._watch.fds

    def pause_s(self) -> float:
        """After how long `drain()` is due at the latest: a process becomes Python silently."""
        return min(_LONGEST_S, self._watch.look_again_s())

    def drain(self) -> None:
        """Read the records of processes, and finish stacks.

        Raises:
            KernelError: a table could not be filled.
        """
        drain_stacks(self.library, self._watch)

    def name(self, number: int) -> NamedStack:
        """Name the stack with a number.

        Raises:
            KernelError: a map could not be read, or a table filled.
        """
        if number < FIRST_STACK:
            return NamedStack((), _NO_STACK.get(number, "no number of a stack"), 0)
        if self.library.is_of_kernel(number):
            return self._name_kernel(number)
        trace = self.library.trace(number)
        if trace is None:
            self._forgotten += 1
            return NamedStack((), _FORGOTTEN, 0)
        return self._named(trace, self._watch.followed.spaces.version(trace.pid))

    def _name_kernel(self, number: int) -> NamedStack:
        addresses = self.library.kernel_stack(number)
        if addresses is None:
            self._forgotten += 1
            return NamedStack((), _FORGOTTEN, 0)
        frames = self._symbolizer.kernel_stack(addresses)
        return NamedStack(tuple(frame for frame in frames if not is_of_tracepoint(frame)), "", 0)

    def _name(self, owned: OwnedTrace, version: int) -> NamedStack:
        del version  # of what is mapped: another one, other names
        number = FIRST_STACK
        stacks = name_stacks({number: owned.trace}, self._symbolizer)
        frames: Named = stacks.user(number, owned.pid, "") or ()
        end = stacks.end(number, owned.pid, "").cut
        if end:  # the last frame says so
            frames = frames[:-1]
        return NamedStack(tuple(frames), end, owned.pid)

    def stop(self) -> None:
        """Stop walking; walked stacks can still be named."""
        self.library.stop()
        self.drain()

    def causes(self) -> tuple[Cause, ...]:
        """Why stacks are missing or cut, zero or not.

        Raises:
            KernelError: a map could not be read.
        """
        stats = self.library.stats()
        return (
            count_cause(
                "stacks_full",
                stats["stacks_full"] + stats["stacks_busy"] + stats["stacks_crowded"],
                "stacks were lost: there was no room for so many different ones (capacity=)",
            ),
            count_cause(
                "copies_lost",
                not_copied(stats),
                "stacks were cut: user space did not finish them fast enough",
            ),
            count_cause(
                "places_taken",
                stats["places_taken"],
                "stacks were lost: too many programs were preempted on one CPU",
            ),
            count_cause(
                "early",
                stats["early"],
                "stacks are unavailable: their programs ran before load() returned",
            ),
            count_cause(
                "unavailable",
                stats["user_unavailable"] + stats["kernel_unavailable"],
                "stacks could not be read (bpf_get_stack failed)",
            ),
            count_cause(
                "forgotten",
                self._forgotten,
                "stacks were forgotten: thousands of others came before they were read",
            ),
            count_cause(
                "sideband_lost",
                self._watch.followed.lost,
                "records of processes and mappings were lost: names may be missing",
            ),
            *self._watch.java_causes(),
        )

    def close(self) -> None:
        """Detach, unload, and forget the processes; again is harmless."""
        self._owned.close()
