"""Requests that wait for answers, on connections of this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import time

from purebpf.tools.triage.unanswered import UnansweredWatch


def exchange(watch: UnansweredWatch) -> int:
    """Let a client wait for three answers; the inode of its socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        with client, peer:
            for _ in range(3):
                time.sleep(0.05)
                client.send(b"request")
                peer.recv(100)
                for _ in range(2):
                    time.sleep(0.06)
                    watch.tick()
                peer.send(b"answer")
                client.recv(100)
            return os.fstat(client.fileno()).st_ino


def test_a_client_that_waits_is_seen_with_the_age_of_its_request() -> None:
    watch = UnansweredWatch()
    inode = exchange(watch)
    (found,) = [one for one in watch.finish() if one.inode == inode]
    assert found.share > 0.4
    assert found.age_s > 0.05


def test_a_client_that_only_sends_waits_for_nothing() -> None:
    quiet = UnansweredWatch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        with client, peer:
            time.sleep(1.1)
            for _ in range(4):
                client.send(b"line of a log")
                time.sleep(0.05)
                quiet.tick()
            inode = os.fstat(client.fileno()).st_ino
    assert inode not in {one.inode for one in quiet.finish()}


def test_a_connection_whose_other_end_does_not_read() -> None:
    watch = UnansweredWatch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        full, quiet = (socket.create_connection(server.getsockname()) for _ in range(2))
        ends = [server.accept()[0] for _ in range(2)]
        full.setblocking(False)  # noqa: FBT003
        with full, quiet, ends[0], ends[1]:
            for _ in range(6):
                with contextlib.suppress(BlockingIOError):
                    full.send(bytes(1 << 22))
                quiet.send(b"a line")
                ends[1].recv(100)
                time.sleep(0.1)
                watch.tick()
            inodes = [os.fstat(one.fileno()).st_ino for one in (full, quiet)]
            ports = full.getpeername()[1], full.getsockname()[1]
    found = {one.inode: one for one in watch.stalled() if one.inode in inodes}
    assert set(found) == {inodes[0]}
    assert found[inodes[0]].share > 0.8
    assert (found[inodes[0]].peer_port, found[inodes[0]].port) == ports


def test_the_first_request_of_a_connection_may_be_as_old_as_the_connection() -> None:
    watch = UnansweredWatch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        asking: list[socket.socket] = []
        for _ in range(20):
            asking.append(socket.create_connection(server.getsockname()))
            asking[-1].send(b"request")
        silent = socket.create_connection(server.getsockname())
        time.sleep(0.1)
        watch.tick()
        inodes = {os.fstat(client.fileno()).st_ino for client in asking}
        found = {one.inode: one for one in watch.finish()}
        assert inodes <= set(found)
        assert os.fstat(silent.fileno()).st_ino not in found
        one = found[os.fstat(asking[0].fileno()).st_ino]
        assert (one.peer, one.peer_port) == server.getsockname()
        for client in (*asking, silent):
            client.close()
