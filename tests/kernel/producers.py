"""Programs of assembled instructions that send a known number of records to a ring or perf buffer.

Each run takes the next number from a counter in an array map and sends it as 8 bytes; when the
helper refuses, it adds one to a second counter. So the records that arrived and those that did
not are known exactly, without any loader.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import Instruction, pack
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from tests.support import probes

_PACKET = bytes(64)
_CALL, _EXIT, _MOV, _MOV_X, _ADD = 0x85, 0x95, 0xB7, 0xBF, 0x07
_ATOMIC, _STX_DW, _LDX_DW, _LD_DW, _AND, _JEQ, _JA = 0xDB, 0x7B, 0x79, 0x18, 0x57, 0x15, 0x05
_FETCH_ADD = 1

U64 = struct.Struct("=Q")


class Numbers:
    """A codec of 8-byte numbers."""

    size = 8

    def decode(self, buffer: bytes | bytearray | memoryview, offset: int = 0, /) -> int:
        return U64.unpack_from(buffer, offset)[0]


class Source:
    """A map as the readers want it."""

    btf = None
    value_type_id = 0
    text = True

    def __init__(self, descriptor: Descriptor, max_entries: int, name: str = "events") -> None:
        self._descriptor = descriptor
        self.max_entries = max_entries
        self.name = name

    def fileno(self) -> int:
        return self._descriptor.fileno()

    def wakes(self, reader: object) -> None:
        """It is not closed before its readers."""


class Producer:
    """A loaded program, its output map and its counters."""

    def __init__(self, program: Descriptor, counters: Descriptor, source: Source) -> None:
        self._program = program
        self._counters = counters
        self.source = source

    def send(self, count: int) -> None:
        """Run the program `count` times, on this CPU."""
        bpf.prog_test_run(self._program.fileno(), data_in=_PACKET, repeat=count)

    @property
    def refused(self) -> int:
        """How many records the helper refused."""
        return self._value()[1]

    @property
    def sent(self) -> int:
        """How many were tried."""
        return self._value()[0]

    def _value(self) -> tuple[int, int]:
        value = bytearray(16)
        bpf.map_lookup_elem(self._counters.fileno(), bytes(4), value)
        return struct.unpack("=QQ", value)


def _load_map(register: int, fd: int, pseudo: int) -> list[Instruction]:
    return [Instruction(_LD_DW, register, pseudo, 0, fd), Instruction(0, 0, 0, 0, 0)]


def _counted(counters: int) -> list[Instruction]:
    """r6 = the counters; the stack at -8 = the next number.

    Without atomic_fetch, two CPUs at a time may take the same number, but count twice.
    """
    fetches = not probes.missing("atomic_fetch")
    take = [] if fetches else [Instruction(_LDX_DW, 2, 6, 0, 0)]
    taken = 1 if fetches else 2
    return [
        Instruction(_MOV_X, 7, 1, 0, 0),
        *_load_map(6, counters, 2),
        *take,
        Instruction(_MOV, 1, 0, 0, 1),
        Instruction(_ATOMIC, 6, 1, 0, _FETCH_ADD if fetches else 0),
        Instruction(_STX_DW, 10, taken, -8, 0),
    ]


def _refused() -> list[Instruction]:
    """Count a failure, reached by falling through."""
    return [
        Instruction(_MOV, 1, 0, 0, 1),
        Instruction(_ATOMIC, 6, 1, 8, 0),
        Instruction(_MOV, 0, 0, 0, 0),
        Instruction(_EXIT, 0, 0, 0, 0),
    ]


def _to_ring(ring: int, counters: int, flags: int) -> bytes:
    return pack(
        [
            *_counted(counters),
            *_load_map(1, ring, 1),
            Instruction(_MOV_X, 2, 10, 0, 0),
            Instruction(_ADD, 2, 0, 0, -8),
            Instruction(_MOV, 3, 0, 0, 8),
            Instruction(_MOV, 4, 0, 0, flags),
            Instruction(_CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_ringbuf_output),
            Instruction(_JEQ, 0, 0, 2, 0),
            *_refused(),
        ]
    )


def _reserving(ring: int, counters: int) -> bytes:
    """Reserve, then submit records with an even number and discard the others."""
    return pack(
        [
            *_counted(counters),
            *_load_map(1, ring, 1),
            Instruction(_MOV, 2, 0, 0, 8),
            Instruction(_MOV, 3, 0, 0, 0),
            Instruction(_CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_ringbuf_reserve),
            Instruction(_JEQ, 0, 0, 11, 0),
            Instruction(_LDX_DW, 2, 10, -8, 0),  # r2 = number
            Instruction(_STX_DW, 0, 2, 0, 0),
            Instruction(_MOV_X, 1, 0, 0, 0),
            Instruction(_AND, 2, 0, 0, 1),
            Instruction(_JEQ, 2, 0, 3, 0),
            Instruction(_MOV, 2, 0, 0, 0),
            Instruction(_CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_ringbuf_discard),
            Instruction(_JA, 0, 0, 2, 0),
            Instruction(_MOV, 2, 0, 0, 0),
            Instruction(_CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_ringbuf_submit),
            Instruction(_JA, 0, 0, 2, 0),
            *_refused(),
        ]
    )


def _to_perf(array: int, counters: int) -> bytes:
    return pack(
        [
            *_counted(counters),
            Instruction(_MOV_X, 1, 7, 0, 0),
            *_load_map(2, array, 1),
            *_load_map(3, -1, 0),  # no map: BPF_F_CURRENT_CPU, the low 32 bits set
            Instruction(_MOV_X, 4, 10, 0, 0),
            Instruction(_ADD, 4, 0, 0, -8),
            Instruction(_MOV, 5, 0, 0, 8),
            Instruction(_CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_perf_event_output),
            Instruction(_JEQ, 0, 0, 2, 0),
            *_refused(),
        ]
    )


@contextmanager
def ring_producer(
    size: int = 4096, *, flags: int = 0, discard_odd: bool = False
) -> Iterator[Producer]:
    """Sends to a ring buffer of `size` bytes; with `discard_odd`, discards every second record."""
    with ExitStack() as stack:
        ring = stack.enter_context(
            bpf.map_create(bpf_map_type.BPF_MAP_TYPE_RINGBUF, 0, 0, size, map_name=b"events")
        )
        counters = stack.enter_context(_counters())
        if discard_odd:
            code = _reserving(ring.fileno(), counters.fileno())
        else:
            code = _to_ring(ring.fileno(), counters.fileno(), flags)
        program = stack.enter_context(_loaded(code))
        yield Producer(program, counters, Source(ring, size))


@contextmanager
def perf_producer(entries: int) -> Iterator[Producer]:
    """Sends to a perf event array of `entries` elements."""
    with ExitStack() as stack:
        kind = bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY
        array = stack.enter_context(bpf.map_create(kind, 4, 4, entries, map_name=b"events"))
        counters = stack.enter_context(_counters())
        program = stack.enter_context(_loaded(_to_perf(array.fileno(), counters.fileno())))
        yield Producer(program, counters, Source(array, entries))


def packet_program() -> Descriptor:
    """A program that does nothing with packets; the caller closes it."""
    return _loaded(pack([Instruction(_MOV, 0, 0, 0, 0), Instruction(_EXIT, 0, 0, 0, 0)]))


@contextmanager
def sample_counter() -> Iterator[tuple[Descriptor, Callable[[], int]]]:
    """A program for perf events that counts its runs, and a function that tells how many."""
    with ExitStack() as stack:
        counters = stack.enter_context(_counters())
        code = pack(
            [
                *_counted(counters.fileno()),
                Instruction(_MOV, 0, 0, 0, 0),
                Instruction(_EXIT, 0, 0, 0, 0),
            ]
        )
        kind = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
        program = stack.enter_context(bpf.prog_load(kind, code, "GPL"))
        source = Source(counters, 1, "counters")
        yield program, lambda: Producer(program, counters, source).sent


def _counters() -> Descriptor:
    return bpf.map_create(bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 16, 1, map_name=b"counters")


def _loaded(code: bytes) -> Descriptor:
    return bpf.prog_load(bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS, code, "GPL")
