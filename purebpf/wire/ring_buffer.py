"""Framing of a BPF ring buffer (kernel/bpf/ringbuf.c).

The ring is `size` bytes, a power of two; positions are free-running byte counts. A record is an
8-byte header, its first word the length with two flag bits on top, and its data, padded to
8 bytes. The kernel maps the data pages twice in a row, so that a record never looks wrapped.

The order of events is the producer's: the header is written BUSY before the producer position moves
past it, and loses BUSY when the program submits or discards. A record that is not BUSY is therefore
whole, as is everything before the first BUSY one. This holds for a reader whose loads are not
reordered, as on x86.
"""

from __future__ import annotations

from purebpf.errors import FormatError

BUSY = 1 << 31
DISCARD = 1 << 30
HEADER_SIZE = 8


def stride(length: int) -> int:
    """Bytes that a record of `length` takes, its header and padding included."""
    return (length + HEADER_SIZE + 7) & ~7


def alike(words: memoryview, consumer: int, producer: int, limit: int) -> tuple[int, int]:
    """(length, how many) of the finished records of one length that come next.

    The number is 0 if few records match: look at each with `committed`, which takes ten times as
    long. Arguments and errors are the same as for `committed`.
    """
    _check(words, consumer, producer)
    start = (consumer & (words.nbytes // 2 - 1)) >> 2
    length = words[start] if consumer < producer else BUSY
    step = stride(length)
    count = min((producer - consumer) // step, limit)
    if length & (BUSY | DISCARD):
        return 0, 0
    # Behind a record of another length these are not headers, but they are not looked at, either.
    headers = words[start : start + (count * step >> 2) : step >> 2].tolist()
    if headers.count(length) == count:
        return length, count
    first_other = next(at for at, header in enumerate(headers) if header != length)
    return length, first_other if 2 * first_other >= count else 0


def _check(words: memoryview, consumer: int, producer: int) -> None:
    size = words.nbytes // 2
    if not 0 <= producer - consumer <= size or consumer & 7:
        raise FormatError(
            "ring buffer", f"consumer {consumer}, producer {producer}", f"not in {size} bytes"
        )


def find_committed(
    words: memoryview, consumer: int, producer: int, limit: int
) -> tuple[list[tuple[int, int]], int]:
    """The finished records between the positions, and the consumer position behind them.

    Args:
        words: the data pages, mapped twice, as 32-bit words.
        consumer: position of the oldest record not yet consumed.
        producer: position behind the newest one.
        limit: stop after this many records.

    Returns: (offset, length) of each record's data in bytes, the offset relative to the `consumer`
        position; discarded records are skipped. Then the new consumer position.

    Raises:
        FormatError: when the positions or a length cannot belong to this ring.
    """
    _check(words, consumer, producer)
    mask = words.nbytes // 2 - 1
    position = consumer
    spans: list[tuple[int, int]] = []
    while position < producer and len(spans) < limit:
        word = words[(position & mask) >> 2]
        if word & BUSY:
            break
        length = word & ~DISCARD
        following = position + stride(length)
        if following > producer:
            raise FormatError(
                "ring buffer",
                f"position {position}",
                f"a record of {length} bytes runs past the end",
            )
        if word == length:
            spans.append((position + HEADER_SIZE - consumer, length))
        position = following
    return spans, position
