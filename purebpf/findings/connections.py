"""`Connections`: the processes that have sockets and pipes open, and their roles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from purebpf.findings.facts import Endpoint, Facts, Process, Socket
from purebpf.findings.waiting import Side

__all__ = ["Connections"]

_WELL_KNOWN = 10_000
"""A lower port is the server's port, unless a listener shows the opposite."""
_LISTEN = 10
"""TCP_LISTEN of include/net/tcp_states.h."""
_STDERR = 2


class Connections:
    """Sockets and pipes of this machine, with the processes that have them open."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def sockets(self) -> dict[int, list[int]]:
        """The processes that have a socket open, by inode."""
        return self._holders("socket:[")

    @cached_property
    def pipes(self) -> dict[int, list[int]]:
        """The processes that have a pipe open, by inode."""
        return self._holders("pipe:[")

    def _holders(self, prefix: str) -> dict[int, list[int]]:
        holders: dict[int, list[int]] = defaultdict(list)
        for pid, links in self._facts.descriptors.items():
            for link in set(links.values()):
                if link.startswith(prefix):
                    holders[int(link[len(prefix) : -1])].append(pid)
        return holders

    @cached_property
    def listeners(self) -> dict[int, set[int]]:
        """Processes that listen, by port."""
        listeners: dict[int, set[int]] = defaultdict(set)
        for socket in self._facts.sockets:
            if socket.state == _LISTEN and socket.protocol.startswith("tcp"):
                listeners[socket.port].update(self.owners_of(socket.inode))
        return listeners

    def owners_of(self, inode: int) -> list[int]:
        """The processes that have a listener open, without programs that have only inherited it.

        A server's children that execute another program keep the descriptors of the server which
        are not to be closed then: a script that sends its mail does not accept its connections.
        """
        owners = self.sockets.get(inode, [])
        heirs: set[int] = set()
        for pid in sorted(owners):
            process = self._processes.get(pid)
            parent = self._processes.get(process.ppid) if process else None
            if process and parent and parent.pid in owners:
                is_other = process.exe != parent.exe and bool(process.exe and parent.exe)
                heirs |= {pid} if is_other or parent.pid in heirs else set()
        return [pid for pid in owners if pid not in heirs]

    @cached_property
    def _processes(self) -> dict[int, Process]:
        return {process.pid: process for process in self._facts.processes}

    @cached_property
    def local_addresses(self) -> set[str]:
        """Addresses of this machine that some socket has."""
        return {socket.address for socket in self._facts.sockets}

    def is_local(self, address: str) -> bool:
        """Return True for an address of this machine."""
        return address.startswith("127.") or address == "::1" or address in self.local_addresses

    def servers_of(self, endpoint: Endpoint) -> set[int]:
        """The processes of this machine that listen where a client's connection goes.

        A unix socket leads to the processes that have its other end open.
        """
        if endpoint.family == "other":
            return set(self._unix_peers(endpoint))
        if endpoint.kind != "socket" or not endpoint.port or not self.is_local(endpoint.address):
            return set()
        return self.listeners.get(endpoint.port, set())

    def ends_of(self, pid: int) -> list[Endpoint]:
        """The other ends of the TCP connections that a process has open."""
        ends = []
        for link in self._facts.descriptors.get(pid, {}).values():
            socket = self.by_inode.get(int(link[8:-1])) if link.startswith("socket:[") else None
            if socket is not None and socket.peer_port and socket.protocol.startswith("tcp"):
                own = (socket.peer, socket.peer_port, socket.port, socket.inode)
                ends.append(Endpoint("socket", "inet", *own))
        return ends

    def readers_of(self, endpoint: Endpoint) -> list[int]:
        """The processes of this machine at the other end of a pipe or of a connection."""
        if endpoint.kind == "pipe":
            return self.pipes.get(endpoint.inode, [])
        if endpoint.family == "other":
            return self._unix_peers(endpoint)
        if not endpoint.port:
            return []
        return [
            pid
            for socket in self._facts.sockets
            if (socket.port, socket.peer_port) == (endpoint.port, endpoint.local_port)
            for pid in self.sockets.get(socket.inode, ())
        ]

    def named(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint with the address of its peer, if that is a unix socket with one."""
        if endpoint.family != "other":
            return endpoint
        peer = self._facts.unix_peers.get(endpoint.inode, 0)
        return endpoint._replace(address=self._facts.unix_names.get(peer, ""))

    def _unix_side(self, endpoint: Endpoint) -> Side:
        names = self._facts.unix_names
        if endpoint.inode in names:
            return Side.SERVER
        is_client = self._facts.unix_peers.get(endpoint.inode, 0) in names
        return Side.CLIENT if is_client else Side.UNKNOWN

    def _unix_peers(self, endpoint: Endpoint) -> list[int]:
        """The processes at the other end; of a closed connection, those with its address."""
        peer = self._facts.unix_peers.get(endpoint.inode, 0)
        name = self._facts.unix_names.get(peer, "")
        return self.sockets.get(peer) or self._unix_owners.get(name, [])

    @cached_property
    def _unix_owners(self) -> dict[str, list[int]]:
        """The processes that have the sockets of an address open."""
        owners: dict[str, list[int]] = defaultdict(list)
        for inode, name in self._facts.unix_names.items():
            owners[name] += (pid for pid in self.sockets.get(inode, ()) if pid not in owners[name])
        return owners

    def side(self, endpoint: Endpoint) -> Side:
        """Return the side of the connection: client, server or unknown."""
        if endpoint.family == "other":
            return self._unix_side(endpoint)
        if endpoint.kind != "socket" or not endpoint.port:
            return Side.UNKNOWN
        if endpoint.local_port in self.listeners:
            return Side.SERVER
        if endpoint.port in self.listeners or endpoint.port < _WELL_KNOWN:
            return Side.CLIENT
        return Side.UNKNOWN

    def have_a_socket(self, pid: int, other: int) -> bool:
        """Return True if a unix socket connects two processes, with or without a name."""
        ends = self._unix_inodes(other)
        return any(self._facts.unix_peers.get(inode, 0) in ends for inode in self._unix_inodes(pid))

    def _unix_inodes(self, pid: int) -> set[int]:
        links = self._facts.descriptors.get(pid, {}).values()
        inodes = {int(link[len("socket:[") : -1]) for link in links if link.startswith("socket:[")}
        return inodes & self._facts.unix_peers.keys()

    def has_clients(self, pids: Iterable[int]) -> bool:
        """Return True if somebody may wait for these processes: by a connection or a pipe.

        Standard input and output do not count: everybody's lead to somebody.
        """
        pids = set(pids)
        for pid in pids:
            for fd, link in self._facts.descriptors.get(pid, {}).items():
                kind, _, number = link.partition(":[")
                if fd <= _STDERR or kind not in ("pipe", "socket"):
                    continue  # "anon_inode:[eventpoll]" has no number
                inode = int(number[:-1])
                if kind == "pipe" and set(self.pipes.get(inode, ())) - pids:
                    return True
                if kind == "socket" and self.serves(inode):
                    return True
        return False

    def is_service(self, pids: Iterable[int]) -> bool:
        """Return True if one of these processes answers on sockets."""
        return any(
            self.serves(int(link[len("socket:[") : -1]))
            for pid in pids
            for fd, link in self._facts.descriptors.get(pid, {}).items()
            if fd > _STDERR and link.startswith("socket:[")
        )

    def serves(self, inode: int) -> bool:
        """Return True for a socket of a server: one that listens, or has a client."""
        socket = self.by_inode.get(inode)
        if socket is None:  # a unix socket
            return True
        return socket.state == _LISTEN or socket.port in self.listeners

    @cached_property
    def by_inode(self) -> dict[int, Socket]:
        """Sockets by inode."""
        return {socket.inode: socket for socket in self._facts.sockets}
