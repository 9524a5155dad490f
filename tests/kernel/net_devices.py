"""Programs of network interfaces, and packets that are known to fire them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Self

import purebpf

__all__ = ["PRIME", "UNSPEC", "Mailbox", "load"]

SPEC = purebpf.read_object(Path(__file__).parent.parent / "data" / "net_device.bpf.o")
PRIME = 13
UNSPEC = -1 & 0xFFFFFFFF  # TC_ACT_UNSPEC


def load(*names: str, **values: object) -> purebpf.Object:
    spec = SPEC.only(*names)
    if not names[0].startswith("to_"):
        inside = {name: each for name, each in spec.maps.items() if each.section}
        spec = spec._replace(maps=inside)
    return purebpf.load(spec.set(**values))


class Mailbox:
    """A socket, and datagrams to it over the loopback."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)

    def mail(self, times: int = PRIME) -> int:
        """Send; how many arrived."""
        for _ in range(times):
            self._socket.sendto(b"x", self._socket.getsockname())
        count = 0
        while True:
            try:
                self._socket.recv(1)
            except BlockingIOError:
                return count
            count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
