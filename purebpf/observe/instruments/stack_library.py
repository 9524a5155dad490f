"""`StackLibrary`: bpf_src/stack_library.bpf.c, linked into somebody else's programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.sections import BPF_F_SLEEPABLE
from purebpf.closable import Closing
from purebpf.errors import LinkError
from purebpf.observe.instruments import stack_maps
from purebpf.observe.instruments.call_graph import load_walking, read_python
from purebpf.observe.instruments.quiesce import settle
from purebpf.observe.unwind.stack_numbers import as_completed
from purebpf.observe.unwind.user_stacks import Trace
from purebpf.relocate.join import call_library, calls_of, join
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.loader.maps.map import Map
    from purebpf.observe.unwind.programs import EarlierLookup
    from purebpf.observe.unwind.user_stacks import Finished
    from purebpf.spec import ObjectSpec, ProgramSpec

__all__ = ["FIRST_STACK", "OwnedTrace", "StackLibrary", "link_library"]

FIRST_STACK = 16
"""PUREBPF_FIRST_STACK of <purebpf/stacks.h>."""
_KERNEL_BIT = 1 << 63
_OWNER_TAG = 0xFFF << 48
"""OWNER_TAG of bpf_src/include/stacks.h, in the word behind the addresses of a user stack."""
_TGID = 0xFFFFFFFF
_PREFIX = "stacks."
_USER, _KERNEL = "user_stack", "kernel_stack"
_BY_REGISTERS, _BY_TASK, _OF_KERNEL = (
    "user_stack_by_registers",
    "user_stack_by_task",
    "kernel_stack_here",
)
_WITH_REGISTERS = (bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, bpf_prog_type.BPF_PROG_TYPE_KPROBE)
_OF_TASKS = (
    bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT,
    bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT,
    bpf_prog_type.BPF_PROG_TYPE_TRACING,
)
_COPIES, _PAGES = 1000, 512
"""A second and CPU, and of a ring: events come in bursts, before a walk has its tables."""
_KEPT = 65536
"""Finished stacks that are remembered."""


class OwnedTrace(NamedTuple):
    """A user stack and its process, by its number in our pid namespace."""

    pid: int
    trace: Trace


def link_library(spec: ObjectSpec, library: ObjectSpec) -> ObjectSpec:
    """Return an object whose calls of <purebpf/stacks.h> lead to the library's functions.

    Raises:
        LinkError: nothing calls them; a call from a function that is no program, or from a program
            of a type that has no stack to walk.
    """
    calls = calls_of(spec, (_USER, _KERNEL))
    if not any(calls.values()):
        problem = "no function of the object calls it: include <purebpf/stacks.h>"
        raise LinkError(spec.source, _USER, problem)
    spec = join(spec, library, (_BY_REGISTERS, _BY_TASK, _OF_KERNEL), _PREFIX)
    spec = call_library(spec, _USER, lambda program: _function_for(spec, program), _PREFIX)
    return call_library(spec, _KERNEL, lambda program: _kernel_for(spec, program), _PREFIX)


def _function_for(spec: ObjectSpec, program: ProgramSpec) -> str:
    if program.type in _WITH_REGISTERS:
        return _BY_REGISTERS
    if program.type in _OF_TASKS and not program.flags & BPF_F_SLEEPABLE:
        return _BY_TASK
    raise LinkError(
        spec.source,
        _USER,
        f"program {program.name} ({program.section}) cannot walk stacks: the programs of perf "
        "events, uprobes, USDT probes, kprobes, tracepoints, raw tracepoints and functions of the "
        "kernel (fentry, fexit, tp_btf) can, unless they are sleepable",
    )


def _kernel_for(spec: ObjectSpec, program: ProgramSpec) -> str:
    _function_for(spec, program)  # the same programs can
    return _OF_KERNEL


class _Part(Closing):
    """The library's part of a loaded object, by the names that it has in the library."""

    def __init__(self, loaded: Object) -> None:
        self.object = loaded
        self.maps: Mapping[str, Map] = {
            name.removeprefix(_PREFIX): each
            for name, each in loaded.maps.items()
            if name.startswith(_PREFIX)
        }
        self.globals: MutableMapping[str, Any] = _Globals(loaded.globals)

    def close(self) -> None:
        """Close the whole object; again is harmless."""
        self.object.close()


class _Globals(MutableMapping[str, Any]):
    """Global variables of the library."""

    def __init__(self, of_object: MutableMapping[str, Any]) -> None:
        self._of_object = of_object

    def __getitem__(self, name: str) -> Any:
        return self._of_object[_PREFIX + name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._of_object[_PREFIX + name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("a global variable cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        names = (name for name in self._of_object if name.startswith(_PREFIX))
        return (name.removeprefix(_PREFIX) for name in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class StackLibrary(Closing):
    """An object with the library, from its load to `close()`.

    Args:
        spec: the object, which calls functions of <purebpf/stacks.h>.
        load: puts a spec into the kernel.
        earlier: returns the mappings of a process at a time, see `UserStacks`.
        call_graph: how user stacks are walked, see `load_walking`.
        capacity: different stacks that there is room for.
        namespace: the pid namespace to number tasks in, as in `TaskFilter`.

    Attributes:
        object: the object.
        call_graph: how stacks are walked, and why not as asked.
        walking: finishes stacks that the programs could not; None with frame pointers.
        python: reads Python frames; None with frame pointers.
        forgotten: finished stacks that were forgotten, since thousands of others came.

    Raises:
        LinkError: as `link_library`.
        KernelError, NotSupportedError: the kernel refused; nothing stays open.
    """

    def __init__(
        self,
        spec: ObjectSpec,
        load: Callable[[ObjectSpec], Object],
        earlier: EarlierLookup | None = None,
        *,
        call_graph: str = "auto",
        capacity: int = 16384,
        namespace: tuple[int, int] = (0, 0),
    ) -> None:
        self._finished: dict[int, OwnedTrace] = {}
        library = objects.spec("stack_library")
        library = library.only().set(
            max_depth=stack_maps.max_depth(),
            copies_per_second=_COPIES,
            python=True,
            python_lines=True,
            pid_namespace_dev=namespace[0],
            pid_namespace_ino=namespace[1],
        )
        library = library.resize(stacks=capacity)
        with ExitStack() as stack:
            part, self.walking, self.call_graph = load_walking(
                library,
                call_graph,
                lambda chosen: _Part(load(link_library(spec, chosen))),
                stack,
                earlier,
                pages=_PAGES,
            )
            self.object, self.maps, self._globals = part.object, part.maps, part.globals
            self.python = None
            if self.walking is not None:
                self.walking.prepare()
                self.python = read_python(part, self.walking, stack, lines=True, native=False)
            self._owned = stack.pop_all()

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
