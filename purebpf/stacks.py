"""Whole stacks in anybody's BPF program, Python functions among them.

    #include <purebpf/stacks.h>                        // user_stack(ctx), kernel_stack(ctx)

    with purebpf.stacks.load(spec) as traced:          # links the walk into the object
        traced.attach()
        for event in traced.read("events", timeout=1.0):
            for frame in event.stack.frames:
                print(frame.function, frame.file, frame.line)

The walk needs no frame pointers: it follows the unwind tables of each file, which purebpf builds
when a stack needs them. docs/stacks-library.md has the kinds of programs, and the limits.
"""

from __future__ import annotations

import select
import time
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, MutableMapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from purebpf.closable import Closing
from purebpf.elf import read_object
from purebpf.errors import NotSupportedError
from purebpf.loader.load.load import load as load_object
from purebpf.loader.rings.record_types import record_type_id
from purebpf.measure.stacks.linked_stacks import LinkedStacks
from purebpf.measure.targets import PidNamespace, processes_in
from purebpf.observe.instruments.call_graph import CHOICES
from purebpf.observe.instruments.library_link import link_for_loaders
from purebpf.spec import ObjectSpec
from purebpf.symbols.frame import Frame, Unknown
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    import asyncio

    from purebpf.btf.types.parse import Btf
    from purebpf.elf.reader import Source
    from purebpf.loader.maps.map import Map
    from purebpf.loader.programs.link import Link
    from purebpf.loader.programs.program import Program
    from purebpf.loader.rings.readers import Reader
    from purebpf.observe.instruments.attached_object import ProgramPlace

__all__ = ["Stack", "StackFrame", "StackObject", "attach_to", "link", "load"]

_TYPE = "purebpf_stack"
_CUT = "copies_lost"
_QUIET_S = 0.25
"""The walk has its tables if no stack was cut for so long."""
_LOOP_S = 0.005
"""An event loop goes on after so long, also while there are records."""


class StackFrame(NamedTuple):
    """A function of a stack.

    Attributes:
        function: its name; "" where it has none, and then `why` says why.
        file: of Python functions the source file, of others the file that has their code.
        line: of Python functions; else 0.
        address: where the code is; 0 of Python functions.
        kind: "user", "kernel", "python", or "inlined".
        why: why it has no name, or "".
    """

    function: str
    file: str
    line: int
    address: int
    kind: str
    why: str = ""


class Stack(int):
    """A stack's number, as the program has it, that knows its frames.

    It equals the number: `counts[event.stack]` finds the count of a map that the program keeps.
    """

    _names: LinkedStacks

    @property
    def frames(self) -> tuple[StackFrame, ...]:
        """The functions, the innermost first. () for no stack: `end` says why.

        Raises:
            KernelError: a map could not be read.
        """
        return tuple(map(_frame, self._names.name(int(self)).frames))

    @property
    def end(self) -> str:
        """Why the stack lacks callers, or "" if it is whole.

        One of the words of docs/stacks.md: "read_fault", "too_deep", "unverified" (by frame
        pointers, with an outermost function that another one may have called). Of a number that is
        no stack, the reason.

        Raises:
            KernelError: a map could not be read.
        """
        return self._names.name(int(self)).end

    @property
    def pid(self) -> int:
        """The process of a user stack; 0 of others."""
        return self._names.name(int(self)).pid

    def __repr__(self) -> str:
        return f"<Stack {int(self):#x}>"


class StackObject(Closing):
    """A loaded object with stacks: `load` makes it. `close()` detaches and unloads it.

    Attributes:
        call_graph: how user stacks are walked: "tables", or "fp", by frame pointers.
        call_graph_why: why frame pointers, or "".
    """

    def __init__(self, stacks: LinkedStacks) -> None:
        self._stacks = stacks
        self._object = stacks.library.object
        self.call_graph, self.call_graph_why = stacks.library.call_graph
        self._fields: dict[str, tuple[str, ...]] = {}
        self._readers: dict[str, Reader[Any]] = {}
        self._lost_before: dict[str, int] = {}
        self._owned = ExitStack()
        self._owned.enter_context(stacks)

    @property
    def maps(self) -> Mapping[str, Map]:
        """The maps by name, as `Object.maps`."""
        return self._object.maps

    @property
    def programs(self) -> Mapping[str, Program]:
        """The programs by name, as `Object.programs`."""
        return self._object.programs

    @property
    def globals(self) -> MutableMapping[str, Any]:
        """The global variables, as `Object.globals`."""
        return self._object.globals

    def attach(self) -> tuple[Link, ...]:
        """Attach each program where its section says, as `Object.attach`."""
        return self._object.attach()

    def stack(self, number: int) -> Stack:
        """Return the stack with a number of `user_stack()` or `kernel_stack()`."""
        stack = Stack(number)
        stack._names = self._stacks  # noqa: SLF001 - int takes no other arguments
        return stack

    def read(self, name: str, timeout: float | None = None) -> Iterator[Any]:
        """Yield the records of a ring or perf buffer that come within `timeout` seconds.

        Fields that C declares as `purebpf_stack` are of type `Stack`. Meanwhile processes are
        followed and stacks finished. `break` loses nothing.

        Args:
            name: the map.
            timeout: None: for ever.

        Raises:
            KeyError: there is no such map.
            SchemaError: the type of the records is not known.
            KernelError: a map could not be read, or filled.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._waiting(name) as waiting:
            while True:
                yield from self._records(name)
                pause_s = self._pause_s(deadline)
                if pause_s is None:
                    return
                waiting.poll(pause_s)

    async def read_async(
        self,
        name: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the loop goes on without an error
    ) -> AsyncGenerator[Any, None]:
        """Yield the same on the event loop of asyncio that runs; other tasks go on meanwhile.

        Other programs of the loop must not take longer than the stacks can wait: a second, or
        less where many new ones come. Raises as `read`.

        Args:
            name: the map.
            timeout: in seconds; None: for ever.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._waiting(name) as waiting:
            while True:
                resumed = time.monotonic()
                for record in self._records(name):
                    yield record
                    if time.monotonic() - resumed > _LOOP_S:
                        await asyncio.sleep(0)
                        resumed = time.monotonic()
                pause_s = self._pause_s(deadline)
                if pause_s is None:
                    return
                ready = loop.create_future()
                loop.add_reader(waiting.fileno(), _set_once, ready)
                try:
                    await asyncio.wait((ready,), timeout=pause_s)
                finally:
                    loop.remove_reader(waiting.fileno())

    def wait(self, timeout: float) -> None:
        """Follow processes and finish stacks for so many seconds, while programs count in maps.

        Raises:
            KernelError: a map could not be read, or filled.
        """
        deadline = time.monotonic() + timeout
        with self._waiting() as waiting:
            while True:
                self.drain()
                pause_s = self._pause_s(deadline)
                if pause_s is None:
                    return
                waiting.poll(pause_s)

    def _records(self, name: str) -> Iterator[Any]:
        """Yield the records that are there."""
        self.drain()
        fields = self._stack_fields(name)
        for record in self._reader(name).drain():
            made = {field: self.stack(getattr(record, field)) for field in fields}
            yield record._replace(**made) if made else record

    def _waiting(self, *names: str) -> select.epoll:
        """Return a poll for records of maps, for processes to follow and stacks to finish."""
        waiting = select.epoll()
        for number in (*(self._reader(name).fileno() for name in names), *self._stacks.fds):
            waiting.register(number, select.EPOLLIN)
        return waiting

    def _pause_s(self, deadline: float | None) -> float | None:
        """Return for how long nothing is due; None once a moment has passed."""
        left_s = None if deadline is None else deadline - time.monotonic()
        if left_s is not None and left_s <= 0:
            return None
        pause_s = max(0.0, self._stacks.pause_s())
        return pause_s if left_s is None else min(left_s, pause_s)

    def _reader(self, name: str) -> Reader[Any]:
        if name not in self._readers:
            self._readers[name] = self._owned.enter_context(self._object.maps[name].reader())
        return self._readers[name]

    def _stack_fields(self, name: str) -> tuple[str, ...]:
        """The fields of a map's records that are stacks."""
        if name not in self._fields:
            btf, type_id = record_type_id(self._object.maps[name], None)
            self._fields[name] = _fields_of(btf, type_id)
        return self._fields[name]

    @property
    def fds(self) -> set[int]:
        """Descriptors of loops of your own: when one is readable, call `drain()`."""
        return self._stacks.fds

    def drain(self) -> None:
        """Follow processes, and finish the stacks that came: often, or stacks are cut.

        Raises:
            KernelError: a table could not be filled.
        """
        self._stacks.drain()

    def stop(self) -> None:
        """Walk no more stacks; walked ones, and maps, can still be read."""
        self._stacks.stop()

    def settle(self, timeout: float = 10.0) -> bool:
        """Wait until the walk has the tables of the code that runs; then `losses` starts at zero.

        Attach the programs first, and empty your own maps afterwards: while tables are missing,
        stacks of a busy process come faster than user space can finish them, and are cut.

        Args:
            timeout: in seconds.

        Returns:
            True if no stack was cut for a while; False if stacks were still cut at the end.

        Raises:
            KernelError: a map could not be read, or filled.
        """
        deadline = time.monotonic() + timeout
        cut, is_settled = -1, False
        while not is_settled and time.monotonic() < deadline:
            self.wait(min(_QUIET_S, max(0.0, deadline - time.monotonic())))
            before, cut = cut, self._losses()[_CUT]
            is_settled = cut == before and not self._stacks.is_getting_ready
        self._lost_before = self._losses()
        return is_settled

    def losses(self) -> dict[str, int]:
        """Count the stacks that were lost or cut so far, by cause; zeros included.

        The count begins at `load` or `attach_to`, or at the end of the last `settle`.

        Raises:
            KernelError: a map could not be read.
        """
        before = self._lost_before
        return {name: lost - before.get(name, 0) for name, lost in self._losses().items()}

    def _losses(self) -> dict[str, int]:
        return {cause.name: cause.lost for cause in self._stacks.causes()}

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()


def load(
    source: ObjectSpec | Source,
    *,
    pids: Collection[int] = (),
    cgroup: str | None = None,
    call_graph: str = "auto",
    capacity: int = 16384,
    **options: Any,
) -> StackObject:
    """Load an object that includes <purebpf/stacks.h>, with the functions of that header.

    Args:
        source: as of `purebpf.load`.
        pids: processes to get ready for; their first stacks need no copies then. Empty: all.
        cgroup: the same for the processes in a cgroup v2 directory and below it.
        call_graph: "auto" (unwind tables where the kernel can, Linux 5.15; else frame pointers),
            "tables", "deep", "copy" or "fp": docs/stacks.md.
        capacity: different stacks that there is room for; later ones are lost, and counted.
        options: of `purebpf.load`.

    Raises:
        LinkError: no function calls `user_stack()` or `kernel_stack()`; a function that is no
            program does; or a program of a kind that has no stack to walk.
        NoSuchTargetError: there is no such cgroup.
        VerifierError, KernelError, NotSupportedError, FormatError: as `purebpf.load`.
    """
    spec = source if isinstance(source, ObjectSpec) else read_object(source)
    processes = _processes(pids, cgroup)
    stacks = LinkedStacks.load(
        spec,
        partial(load_object, **options),
        pids=processes,
        call_graph=call_graph,
        capacity=capacity,
    )
    return _get_ready(stacks, processes)


def link(
    source: ObjectSpec | Source, *, call_graph: str = "tables", capacity: int = 16384
) -> bytes:
    """Return an object file with the walk, for libbpf, cilium/ebpf, bpftool or `purebpf.load`.

    When the other loader has loaded it, `attach_to` reads its stacks. Link it for the machine's
    architecture, with the version of purebpf that will read the stacks.

    Args:
        source: as of `purebpf.load`.
        call_graph: as of `load`, but for "auto": only a loader can try. "fp" for kernels before
            Linux 5.15.
        capacity: as of `load`.

    Raises:
        LinkError, FormatError: as `load`.
        NotSupportedError: an object that cannot be written: with struct_ops, arenas, jump tables,
            or maps with declared contents.
        ValueError: another `call_graph`.
    """
    if call_graph not in CHOICES or call_graph == "auto":
        raise ValueError(f"call_graph is one of {', '.join(CHOICES[1:])}, not {call_graph!r}")
    spec = source if isinstance(source, ObjectSpec) else read_object(source)
    return link_for_loaders(spec, call_graph, capacity)


def attach_to(
    *programs: ProgramPlace, pids: Collection[int] = (), cgroup: str | None = None
) -> StackObject:
    """Read the stacks of an object that `link` wrote, and another loader has loaded.

    Until this returns, and after it is closed, the programs get no stacks; they and their maps
    stay. Only one process at a time may read the stacks of an object.

    Args:
        programs: those that walk stacks: each its id, the path of its pin, or something with
            `fileno()`; or a `purebpf.Object`, for all of its programs.
        pids: as of `load`.
        cgroup: as of `load`.

    Raises:
        LinkError: the programs do not have the walk, or another version linked it.
        NoSuchTargetError: there is no such cgroup.
        KernelError: there is no such program, or no right to read its maps (CAP_SYS_ADMIN).
        NotSupportedError: this process is in another pid namespace than the first one.
    """
    if PidNamespace.own() != (0, 0):
        raise NotSupportedError(
            "purebpf.stacks.attach_to()",
            "the linked walk numbers processes as the first pid namespace does; run it there, or "
            "use purebpf.stacks.load()",
        )

    processes = _processes(pids, cgroup)
    return _get_ready(LinkedStacks.attach(programs, processes), processes)


def _get_ready(stacks: LinkedStacks, processes: Collection[int]) -> StackObject:
    """Return the object, which builds the tables of these processes as it is drained."""
    with ExitStack() as undo:
        undo.enter_context(stacks)
        if processes:
            stacks.get_ready(processes)
        undo.pop_all()
    return StackObject(stacks)


def _processes(pids: Collection[int], cgroup: str | None) -> Collection[int]:
    return pids if cgroup is None else {*pids, *processes_in(cgroup)}


def _set_once(ready: asyncio.Future[None]) -> None:
    """Set a future that a readable descriptor may set again before the waiting task runs."""
    if not ready.done():
        ready.set_result(None)


def _fields_of(btf: Btf, type_id: int) -> tuple[str, ...]:
    from purebpf.btf.types.kinds import Struct

    record = btf.type(btf.resolve(type_id))
    if not isinstance(record, Struct):
        return ()
    return tuple(member.name for member in record.members if btf.name(member.type_id) == _TYPE)


def _frame(frame: Frame | Unknown) -> StackFrame:
    if isinstance(frame, Unknown):
        why = f"{frame.reason} ({frame.detail})" if frame.detail else str(frame.reason)
        return StackFrame("", frame.module, 0, frame.address, frame.kind, why)
    is_python = frame.kind == "python"
    address = 0 if is_python else frame.address
    return StackFrame(frame.name, frame.module, frame.line, address, frame.kind)
