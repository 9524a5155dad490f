"""`SocketWatch`: the TCP and UDP sockets of all network namespaces, with their queues."""

from __future__ import annotations

import ipaddress
import os
from collections import Counter
from functools import lru_cache
from itertools import islice

from purebpf.findings.facts import SegmentCount, Socket
from purebpf.measure.proc_files import read_text
from purebpf.syscall import proc

__all__ = ["SocketWatch"]

_PROTOCOLS = ("tcp", "tcp6", "udp", "udp6")
_MOST_NAMESPACES = 50
_MOST_LINES = 20_000
"""Of one file of /proc/PID/net: to read more would take longer than a second."""
_LISTEN, _TIME_WAIT, _ESTABLISHED = "0A", "06", "01"
_NOTHING = "00000000:"
"""The bytes of a connection that are not acknowledged: the start of its queues."""


class SocketWatch:
    """Reads them at each `tick`; a socket that is gone by then stays in the result."""

    def __init__(self) -> None:
        self._sockets: dict[tuple[int, int], Socket] = {}
        self._queues: dict[tuple[int, int], list[int]] = {}
        self._seen: Counter[tuple[int, int]] = Counter()
        self._waiting: Counter[tuple[int, int]] = Counter()
        self._segments: dict[int, list[tuple[int, int]]] = {}
        self._ticks = 0

    def tick(self) -> None:
        """Take in the sockets of this moment."""
        self._ticks += 1
        for namespace, pid in _namespaces().items():
            counters = _segments(pid)
            if counters:
                self._segments.setdefault(namespace, []).append(counters)
            for protocol in _PROTOCOLS:
                lines = read_text(f"/proc/{pid}/net/{protocol}").splitlines()[1:]
                for line in islice(lines, _MOST_LINES):
                    self._add(line.split(), protocol, namespace)

    def _add(self, fields: list[str], protocol: str, namespace: int) -> None:
        """Add one line; a connection that an earlier tick has seen stays as it was.

        Connections in TIME_WAIT belong to no process, and there may be thousands.
        """
        has_queue = fields[3] == _LISTEN or protocol.startswith("udp")
        key = namespace, int(fields[9])
        self._seen[key] += 1
        if fields[3] == _ESTABLISHED and not fields[4].startswith(_NOTHING):
            self._waiting[key] += protocol.startswith("tcp")
        if fields[3] == _TIME_WAIT or (key in self._sockets and not has_queue):
            return
        socket = self._sockets[key] = _parse(fields, protocol, namespace)
        if has_queue:
            self._queues.setdefault(key, []).append(int(socket.queue))

    def finish(self) -> tuple[Socket, ...]:
        """All that were seen, with the means of their queues and the shares of the time."""
        for key, lengths in self._queues.items():
            mean = sum(lengths) / len(lengths)
            self._sockets[key] = self._sockets[key]._replace(queue=mean)
        return tuple(
            socket._replace(
                share=self._seen[key] / self._ticks,
                unacknowledged=self._waiting[key] / self._ticks,
            )
            for key, socket in self._sockets.items()
        )

    def segments(self) -> tuple[SegmentCount, ...]:
        """The TCP segments of each namespace between the first look and the last."""
        return tuple(
            SegmentCount(namespace, looks[-1][0] - looks[0][0], looks[-1][1] - looks[0][1])
            for namespace, looks in self._segments.items()
        )


def _segments(pid: int) -> tuple[int, int] | None:
    """OutSegs and RetransSegs of a process's namespace; None if they cannot be read."""
    lines = [line.split() for line in read_text(f"/proc/{pid}/net/snmp").splitlines()]
    values = {
        name: value
        for names, numbers in zip(lines[::2], lines[1::2], strict=False)
        if names[0] == "Tcp:"
        for name, value in zip(names, numbers, strict=False)
    }
    if "OutSegs" not in values or "RetransSegs" not in values:
        return None
    return int(values["OutSegs"]), int(values["RetransSegs"])


def _namespaces() -> dict[int, int]:
    """A process of each network namespace, ours first."""
    found: dict[int, int] = {}
    for pid in (os.getpid(), *proc.pids()):
        try:
            found.setdefault(os.stat(f"/proc/{pid}/ns/net").st_ino, pid)
        except OSError:
            continue
        if len(found) >= _MOST_NAMESPACES:
            break
    return found


def _parse(fields: list[str], protocol: str, namespace: int) -> Socket:
    """A line of /proc/PID/net/tcp and its like: proc_pid_net(5)."""
    address, port = _end(fields[1])
    peer, peer_port = _end(fields[2])
    drops = int(fields[12]) if protocol.startswith("udp") and len(fields) > 12 else 0  # noqa: PLR2004
    return Socket(
        *(int(fields[9]), protocol, address, port, peer, peer_port, int(fields[3], 16)),
        queue=int(fields[4].partition(":")[2], 16),
        drops=drops,
        namespace=namespace,
    )


@lru_cache(4096)
def _end(text: str) -> tuple[str, int]:
    """An address and a port of `0100007F:1F90`: words of 32 bits in the CPU's order."""
    digits, _, port = text.partition(":")
    raw = bytes.fromhex(digits)
    swapped = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(swapped)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port, 16)
