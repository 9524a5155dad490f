"""What a ring buffer holds, as one numpy array: records are found and copied by the run.

Records of one length stand at equal distances, header after header; numpy compares the headers of
all of them at once, and copies what lies between. Where the length changes, another run begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from purebpf.errors import FormatError
from purebpf.kernel.map_numpy import numpy
from purebpf.wire.ring_buffer import BUSY, DISCARD, HEADER_SIZE

__all__ = ["Run", "next_run"]


class Run(NamedTuple):
    """Records of one length, copied; `position` is the consumer's behind them."""

    records: Any
    position: int


def next_run(data: memoryview, position: int, target: int, dtype: Any) -> Run | None:
    """The finished records of one length from `position` on; None: there are none (yet).

    Args:
        data: the data pages, mapped twice.
        position: the consumer's.
        target: how far to read: the producer's position.
        dtype: of a record; what is longer is cut off.

    Raises:
        FormatError: a record is shorter than its type, or passes the end.
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
            problem = f"a record of {length} bytes passes the end"
            raise FormatError("ring buffer", f"position {position}", problem)
        if head & DISCARD:
            position += step
            continue
        if length < dtype.itemsize:
            problem = f"its type has {dtype.itemsize}"
            raise FormatError("record", f"{length} bytes", problem)
        count = (target - position) // step
        heads = np.ndarray((count,), "<u4", data, start, (step,))
        same = heads == length
        count = count if same.all() else int(same.argmin())
        records = np.ndarray((count,), dtype, data, start + HEADER_SIZE, (step,)).copy()
        return Run(records, position + count * step)
    return Run(np.empty(0, dtype), position) if position > begin else None
