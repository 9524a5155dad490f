"""The records of a ring buffer as one numpy array: runs of records of one length are copied at
once.

Records of one length stand at equal distances, header after header; numpy compares the headers of
all of them at once, and copies the data between. Where the length changes, another run begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from purebpf.btf.codec.columns import numpy
from purebpf.errors import FormatError
from purebpf.loader.rings.record_types import too_short
from purebpf.tuples import NamedTuple
from purebpf.wire.ring_buffer import BUSY, DISCARD, HEADER_SIZE

__all__ = ["CopiedRun", "next_run", "rows"]


class CopiedRun(NamedTuple):
    """Records of one length, copied; `position` is the consumer's behind them.

    With a `problem` there are none: a record is too short, and `position` is behind it; or the
    ring makes no sense there.
    """

    records: Any
    position: int
    problem: FormatError | None = None


def rows(records: Iterable[bytes], dtype: Any, *, fill: bool) -> tuple[Any, list[bytes]]:
    """Return records as an array, and the remaining ones: from the first that is too short on.

    With `fill`, such a record is filled with zeros.
    """
    padded = [record.ljust(dtype.itemsize, b"\0") for record in records] if fill else list(records)
    whole = [*takewhile(lambda record: len(record) >= dtype.itemsize, padded)]
    data = b"".join(record[: dtype.itemsize] for record in whole)
    return numpy().frombuffer(data, dtype), padded[len(whole) :]


def next_run(
    data: memoryview, position: int, target: int, dtype: Any, *, fill: bool
) -> CopiedRun | None:
    """The finished records of one length from `position` on; None: there are none (yet).

    Args:
        data: the data pages, mapped twice.
        position: the consumer's.
        target: how far to read: the producer's position.
        dtype: of a record; longer records are cut off.
        fill: fill a shorter record with zeros.
    """
    np = numpy()
    mask = data.nbytes // 2 - 1
    begin = position
    while position < target:
        start = position & mask
        head = int.from_bytes(data[start : start + 4], "little")
        if head & BUSY:
            break
        length = head & ~DISCARD
        step = (length + HEADER_SIZE + 7) & ~7
        if position + step > target:
            where, description = (
                f"position {position}",
                f"a record of {length} bytes runs past the end",
            )
            error = FormatError("ring buffer", where, description)
            return CopiedRun(np.empty(0, dtype), position, error)
        if head & DISCARD:
            position += step
            continue
        if length < dtype.itemsize and not fill:
            problem = too_short(length, dtype.itemsize)
            return CopiedRun(np.empty(0, dtype), position + step, problem)
        count = (target - position) // step
        heads = np.ndarray((count,), "<u4", data, start, (step,))
        same = heads == length
        count = count if same.all() else int(same.argmin())
        if length >= dtype.itemsize:
            records = np.ndarray((count,), dtype, data, start + HEADER_SIZE, (step,)).copy()
        else:
            records = np.zeros((count,), dtype)
            columns = records.view("u1").reshape(count, dtype.itemsize)
            columns[:, :length] = np.ndarray(
                (count, length), "u1", data, start + HEADER_SIZE, (step, 1)
            )
        return CopiedRun(records, position + count * step)
    return CopiedRun(np.empty(0, dtype), position) if position > begin else None
