"""The records that a user's own program wrote into a perf.data file, typed by their BTF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from purebpf.btf.codec.codecs import codec
from purebpf.btf.types.kinds import Kind, Ptr, Struct, Var
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError, SchemaError
from purebpf.loader.rings.record_types import Decoder, record_type_id
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import Feature
from purebpf.wire.perf_data_features import unpack_btf
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_records import Comm, Fork, Sample

__all__ = ["ProgramRecord", "RecordTypes", "read_records"]


class ProgramRecord(NamedTuple):
    """One record.

    Attributes:
        event: the name of the map that it was written to.
        time_ns: when, by the clock of the file.
        cpu: where.
        pid: the process that ran.
        tid: the thread.
        comm: its name.
        value: the record by its type; bytes if its type is not known.
    """

    event: str
    time_ns: int
    cpu: int
    pid: int
    tid: int
    comm: str
    value: Any


class _Source(NamedTuple):
    """The parts of a map that tell the type of its records."""

    name: str
    btf: Btf
    value_type_id: int
    text: bool = True
    max_entries: int = 0

    def fileno(self) -> int:
        return -1

    def wakes(self, _: object) -> None:
        """Nobody waits for a file."""


class RecordTypes:
    """The types of the records of a file.

    Attributes:
        names: by event, the spelling of its type: `struct call`; "" if its type is not known.

    Raises:
        FormatError: types that cannot be read.
    """

    def __init__(self, file: PerfData) -> None:
        packed = file.feature(Feature.BPF_BTF)
        types = [Btf(blob) for _, blob in unpack_btf(packed)] if packed is not None else []
        self.names: dict[int, str] = {}
        self.decoders: dict[int, Decoder] = {}
        for number, event in enumerate(file.events):
            if event.has_program_records:
                self.names[number], self.decoders[number] = _find(event.name, types)


def _find(name: str, types: list[Btf]) -> tuple[str, Decoder]:
    """Return the type of a map's records, as `purebpf.loader.rings.record_types` finds it."""
    for btf in types:
        source = _Source(name, btf, _declared(btf, name))
        try:
            _, type_id = record_type_id(source, None)
        except SchemaError:
            continue
        resolved = btf.resolve(type_id)
        spelling = f"{btf.kind(resolved).name.lower()} {getattr(btf.type(resolved), 'name', '')}"
        return spelling.strip(), Decoder(codec(btf, type_id, text=True))
    return "", Decoder(None)


def _declared(btf: Btf, name: str) -> int:
    """Return the type that the map's declaration has as its value, or 0."""
    for variable_id in btf.find(name, Kind.VAR):
        variable = btf.type(variable_id)
        assert isinstance(variable, Var)
        declaration = btf.type(btf.resolve(variable.type_id))
        if not isinstance(declaration, Struct):
            continue
        for member in declaration.members:
            pointer = btf.type(member.type_id)
            if member.name == "value" and isinstance(pointer, Ptr):
                return pointer.type_id
    return 0


def read_records(file: PerfData, types: RecordTypes) -> Iterator[ProgramRecord]:
    """Yield the records, in the order of time.

    Raises:
        FormatError: the file cannot be read, or a record is shorter than its type.
    """
    comms: dict[int, str] = {0: "swapper"}
    for number, record in file.records():
        if isinstance(record, Comm):
            comms[record.tid] = record.comm
        elif isinstance(record, Fork):
            comms[record.tid] = comms.get(record.ptid, f":{record.tid}")
        elif isinstance(record, Sample) and number in types.decoders:
            comm = comms.get(record.tid) or comms.get(record.pid) or f":{record.tid}"
            event = file.events[number].name
            try:
                value = types.decoders[number].one(record.raw)
            except FormatError as error:
                raise FormatError(file.source, f"a record of {event}", str(error)) from None
            yield ProgramRecord(event, record.time, record.cpu, record.pid, record.tid, comm, value)
