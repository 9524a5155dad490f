"""Answers of name servers (RFC 1035): which addresses a name has. Pure."""

from __future__ import annotations

import ipaddress
import struct
from collections import OrderedDict

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

__all__ = ["Answer", "Names", "parse"]

_HEADER = struct.Struct(">HHHHHH")
_RECORD = struct.Struct(">HHIH")
_RESPONSE, _ERROR_MASK = 0x8000, 0xF
_A, _CNAME, _AAAA, _IN = 1, 5, 28, 1
_SIZES = {_A: 4, _AAAA: 16}
_POINTER = 0xC0
_LONGEST_NAME = 255
_MOST_RECORDS = 64


class Answer(NamedTuple):
    """The names of one question, first the questioned name, and their addresses."""

    names: tuple[str, ...]
    addresses: tuple[str, ...]


def parse(message: bytes) -> Answer | None:
    """Read an answer; None: it is not one, or it gives no address.

    A truncated message gives its complete records.
    """
    try:
        return _parse(message)
    except (FormatError, struct.error, IndexError):
        return None


def _parse(message: bytes) -> Answer | None:
    _, flags, questions, answers, _, _ = _HEADER.unpack_from(message)
    if not flags & _RESPONSE or flags & _ERROR_MASK or questions != 1:
        return None
    asked, at = _name(message, _HEADER.size)
    at += 4  # type and class
    names, addresses = [asked], []
    for _ in range(min(answers, _MOST_RECORDS)):
        if at >= len(message):
            break
        _, at = _name(message, at)
        kind, group, _, size = _RECORD.unpack_from(message, at)
        at += _RECORD.size
        data = message[at : at + size]
        if group == _IN and kind == _CNAME:
            names.append(_name(message, at)[0])
        elif group == _IN and _SIZES.get(kind) == len(data):
            addresses.append(str(ipaddress.ip_address(data)))
        at += size
    return Answer(tuple(dict.fromkeys(names)), tuple(addresses)) if addresses else None


def _name(message: bytes, at: int) -> tuple[str, int]:
    """Return the name at a place, and the place behind it.

    A pointer leads back only (RFC 1035, 4.1.4: to a prior occurrence): there is no way round.
    """
    labels: list[str] = []
    end = 0
    length = 0
    while size := message[at]:
        if size & _POINTER == _POINTER:
            target = (size & ~_POINTER) << 8 | message[at + 1]
            end = end or at + 2
            if target >= at:
                raise FormatError("a DNS message", f"offset {at}", "a name points forward")
            at = target
            continue
        label = message[at + 1 : at + 1 + size]
        length += size + 1
        if size & _POINTER or len(label) < size or length > _LONGEST_NAME:
            raise FormatError("a DNS message", f"offset {at}", "a name is too long")
        labels.append(label.decode("ascii", "backslashreplace"))
        at += size + 1
    return ".".join(labels), end or at + 1


class Names:
    """The last name of each address in each network namespace; at most so many.

    Answers from another namespace give no names: every user may be root in a user namespace
    (user_namespaces(7)), and say there anything.
    """

    def __init__(self, most: int = 16384) -> None:
        self._most = most
        self._names: OrderedDict[tuple[int, str], str] = OrderedDict()

    def add(self, answer: Answer, netns: int) -> None:
        """Add the answer of a name server in a network namespace."""
        for address in answer.addresses:
            self._names[netns, address] = answer.names[0]
            self._names.move_to_end((netns, address))
        while len(self._names) > self._most:
            self._names.popitem(last=False)

    def get(self, address: str, netns: int) -> str:
        """The name, or ""."""
        return self._names.get((netns, address), "")
