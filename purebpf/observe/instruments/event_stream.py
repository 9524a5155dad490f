"""`EventStream`: a shipped program that sends a record for each event, of the target tasks."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.btf.codec.codecs import codec
from purebpf.closable import Closing
from purebpf.loader.load.load import load
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.observe.instruments import process_tree, sched_compat
from purebpf.observe.instruments.quiesce import settle
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.observe.instruments.task_filter import TaskFilter

__all__ = ["EventStream", "Record", "StreamRequest"]

_KIND = struct.Struct("=16xI")
"""Where every record has its kind: `struct event` of bpf_src/include/events.h."""


class Record(NamedTuple):
    """One event: its kind, its struct by the object's BTF, and the bytes behind it."""

    kind: int
    fields: Any
    tail: bytes


class StreamRequest(NamedTuple):
    """The programs to run, and their records.

    Attributes:
        object: the name of a shipped object that includes bpf_src/include/events.h.
        kinds: the struct of each kind of record, by number.
        programs: the programs to attach, in this order; () for all.
        settings: constants of the object.
        sizes: max_entries of its maps.
        others: programs that are loaded, but not attached.
        prepare: called with the object between its load and the first attachment; its result is
            closed with the stream.
    """

    object: str
    kinds: Sequence[str]
    programs: Sequence[str] = ()
    settings: Mapping[str, Any] = {}
    sizes: Mapping[str, int] = {}
    others: Sequence[str] = ()
    prepare: Callable[[Any], AbstractContextManager[Any] | None] = lambda _: None


class EventStream(Closing):
    """Sends events until `stop()`; earlier events can be read after it.

    Args:
        request: which programs.
        whose: the target: processes alone, or with the children that they start from now on where
            `tree` is set; a command (`command_pid`) always with its children.
        tree: follow children.

    Raises:
        KernelError, NotSupportedError: the kernel refused; nothing stays open. Needs BTF
            (CONFIG_DEBUG_INFO_BTF), and ring buffers (Linux 5.8, commit 457f44363a88).
    """

    def __init__(self, request: StreamRequest, whose: TaskFilter, *, tree: bool = False) -> None:
        tree = bool(tree and whose.pids)
        follows = bool(whose.command_pid or tree)
        asked = whose._replace(own_pid=os.getpid(), command_pid=0)
        spec = objects.spec(request.object)
        if {"task_storage", "task_pt_regs"} & spec.variables.keys():
            spec = sched_compat.adapt(spec)
        if request.programs:
            spec = spec.only(*request.programs, *request.others)
        spec = asked.apply(spec).set(**request.settings).resize(**request.sizes)
        if follows:
            spec = spec.set(has_tgids=True).resize(tgids=process_tree.CAPACITY)
        self._tree: process_tree.ProcessTree | None = None
        with ExitStack() as stack:
            self.object: Object = stack.enter_context(load(spec))
            asked.fill(self.object.maps)
            if (kept := request.prepare(self.object)) is not None:
                stack.enter_context(kept)
            ring: Any = stack.enter_context(RingBuffer(self.object.maps["events"], bytes))
            self._ring: RingBuffer = ring
            self._tree = process_tree.follow(whose, self.object.maps, stack, tree=tree)
            self._links = stack.enter_context(ExitStack())
            for name in request.programs or self.object.programs:
                self._links.enter_context(self.object.programs[name].attach())
            self._owned = stack.pop_all()
        self._decoders = [self._decoder(name) for name in request.kinds]

    def _decoder(self, name: str) -> Any:
        btf = self.object.maps["events"].btf
        assert btf is not None
        (type_id,) = btf.find(name)
        return codec(btf, type_id)

    def follow(self, pids: Collection[int]) -> None:
        """Take in processes that exist already."""
        self.object.maps["tgids"].update(dict.fromkeys(pids, 1))

    def fileno(self) -> int:
        """Readable when there are events to `drain()`."""
        return self._ring.fileno()

    def drain(self) -> Iterator[Record]:
        """Yield the events since the last call, in sending order."""
        return map(self.decode, self._ring.drain())

    def decode(self, data: bytes) -> Record:
        """Decode the bytes of a record."""
        (kind,) = _KIND.unpack_from(data)
        decoder = self._decoders[kind]
        return Record(kind, decoder.decode(data), data[decoder.size :])

    def stop(self) -> None:
        """Detach, and wait until the last record is complete."""
        self._links.close()
        settle()

    def losses(self) -> dict[str, int]:
        """Return the losses: `struct losses` of the object by field, and the counters of all
        objects.
        """
        variables = self.object.globals
        own = variables["losses"]._asdict() if "losses" in variables else {}
        return own | {
            "events_full": variables["events_full"],
            "children_missed": self._tree.missed if self._tree else 0,
            "recursion_misses": sum(
                program.info.recursion_misses for program in self.object.programs.values()
            ),
        }

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._owned.close()
