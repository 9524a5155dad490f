"""`ChangeDecoder`: from records of the side band to changes of processes. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import FormatError
from purebpf.wire.perf_ring import frames

if TYPE_CHECKING:
    from purebpf.symbols.address_spaces import MappedCode
    from purebpf.symbols.proc_maps import MappedFile
    from purebpf.wire.perf_format import RecordFormat
    from purebpf.wire.perf_records import Comm, Exit, Fork

__all__ = ["SAMPLE_TYPE", "TIME", "TIME_AT", "Change", "ChangeDecoder"]

Change: TypeAlias = "MappedCode | Comm | Fork | Exit"
"""What happened to a process; `time` is CLOCK_MONOTONIC in ns, as bpf_ktime_get_ns."""

SAMPLE_TYPE = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME | bit.PERF_SAMPLE_CPU
"""The end of each record: struct sample_id with a thread, a time and a CPU."""

TIME = struct.Struct("=Q")
TIME_AT = 16
"""The time's distance from the end of a record: the CPU follows."""

_MMAP2 = int(kind.PERF_RECORD_MMAP2)
_BY_TIME = attrgetter("time")
_MAP = struct.Struct("=I4xQQQ")
"""The head of struct perf_record_mmap2; its file and what may be done with it follow."""
_LAST = (1 << 64) - 1
_MOST_FILES = 4096


class ChangeDecoder:
    """Decodes records; most are about mappings, and most of these name the same few files.

    A record that breaks its format is passed over.

    Args:
        form: of the events, which have the sample type `SAMPLE_TYPE` and no build ids.

    Attributes:
        unreadable: how many records were passed over.
    """

    def __init__(self, form: RecordFormat) -> None:
        self.unreadable = 0
        self._form = form
        self._files: dict[bytes, MappedFile | None] = {}

    def decode(self, pieces: Iterable[bytes]) -> list[Change]:
        """Decode runs of `purebpf.wire.process_runs`, in the order of time."""
        changes: list[Change] = []
        for piece in pieces:
            self._decode(piece, changes)
        changes.sort(key=_BY_TIME)
        return changes

    def _decode(self, data: bytes, into: list[Change]) -> None:
        from purebpf.symbols.address_spaces import MappedCode
        from purebpf.wire.perf_records import Comm, Exit, Fork

        files, form, size = self._files, self._form, _MAP.size
        for type_, misc, start, end in frames(data, 0, self._skip):
            try:
                if type_ != _MMAP2:
                    record = form.decode(type_, misc, data, start, end)
                    if isinstance(record, Comm | Fork | Exit):
                        into.append(record)
                    continue
                words = data[start + size : form.body_end(data, start, end, size)]
                file = files.get(words)
                if file is None:
                    if words in files:  # data
                        continue
                    file = self._remember(words, misc, data, start, end)
                    if file is None:
                        continue
            except FormatError as error:
                self._skip(error)
                continue
            pid, address, length, offset = _MAP.unpack_from(data, start)
            (at_ns,) = TIME.unpack_from(data, end - TIME_AT)
            into.append(MappedCode(pid, address, min(address + length, _LAST), offset, file, at_ns))

    def _remember(
        self, words: bytes, misc: int, data: bytes, start: int, end: int
    ) -> MappedFile | None:
        """The file that the end of an MMAP2 record names; None: it is data."""
        from purebpf.symbols.address_spaces import code_of
        from purebpf.wire.perf_records import Mmap2

        if len(self._files) >= _MOST_FILES:
            self._files.clear()
        record = self._form.decode(_MMAP2, misc, data, start, end)
        mapping = code_of(record) if isinstance(record, Mmap2) else None
        file = self._files[words] = mapping.file if mapping else None
        return file

    def _skip(self, _: FormatError) -> None:
        self.unreadable += 1
