"""Framing of a BPF ring buffer (kernel/bpf/ringbuf.c).

The ring is `size` bytes, a power of two; positions are free-running byte counts. A record is an
8-byte header, whose first word is the length with two flag bits on top, and its data, padded to
8 bytes. The kernel maps the data pages twice in a row, so that a record never looks wrapped.

The order of events is the producer's: the header is written BUSY before the producer position
moves past it, and loses BUSY when the program submits or discards. A record that is not BUSY is
therefore whole, and so is everything before the first BUSY one. This holds for a reader whose
loads are not reordered, as on x86.
"""

from __future__ import annotations

from purebpf.errors import FormatError

BUSY = 1 << 31
DISCARD = 1 << 30
HEADER_SIZE = 8


def _alike(words: memoryview, consumer: int, producer: int, limit: int) -> list[tuple[int, int]]:
    """What `committed` finds when all records in question are finished and of one length.

    That is what most programs send, and takes a tenth of the time. Where one differs, nothing.
    """
    start = (consumer & (words.nbytes // 2 - 1)) >> 2
    length = words[start] if consumer < producer else BUSY
    step = (length + HEADER_SIZE + 7) & ~7
    count = min((producer - consumer) // step, limit)
    if length & (BUSY | DISCARD) or (count < limit and (producer - consumer) % step):
        return []
    headers = words[start : start + (count * step >> 2) : step >> 2].tolist()
    if headers.count(length) != count:
        return []
    return [(offset, length) for offset in range(HEADER_SIZE, count * step + 1, step)]


def committed(
    words: memoryview, consumer: int, producer: int, limit: int
) -> tuple[list[tuple[int, int]], int]:
    """The finished records between the positions, and the consumer position behind them.

    Args:
        words: the data pages, mapped twice, as 32-bit words.
        consumer: position of the oldest record not yet consumed.
        producer: position behind the newest one.
        limit: stop after this many records.

    Returns:
        (offset, length) of each record's data in bytes, the offset relative to that of the
        `consumer` position; discarded records are skipped. Then the new consumer position.

    Raises:
        FormatError: when the positions or a length cannot belong to this ring.
    """
    size = words.nbytes // 2
    if not 0 <= producer - consumer <= size or consumer & 7:
        raise FormatError(
            "ring buffer", f"consumer {consumer}, producer {producer}", f"not in {size} bytes"
        )
    mask = size - 1
    position = consumer
    found: list[tuple[int, int]] = _alike(words, consumer, producer, limit)
    if found:
        return found, consumer + found[-1][0] + (found[-1][1] + 7 & ~7)
    while position < producer and len(found) < limit:
        word = words[(position & mask) >> 2]
        if word & BUSY:
            break
        length = word & ~DISCARD
        following = position + ((length + HEADER_SIZE + 7) & ~7)
        if following > producer:
            raise FormatError(
                "ring buffer", f"position {position}", f"a record of {length} bytes passes the end"
            )
        if word == length:
            found.append((position + HEADER_SIZE - consumer, length))
        position = following
    return found, position
