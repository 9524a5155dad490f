"""The other ends of unix sockets, as the kernel lists them."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest

from purebpf.tools.triage import sock_diag, unix_sockets


def inode(one: socket.socket) -> int:
    return os.fstat(one.fileno()).st_ino


def test_both_ends_of_a_pair_and_of_a_connection_are_known(tmp_path: Path) -> None:
    near, far = socket.socketpair()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(tmp_path / "s"))
    waiting, _ = unix_sockets.unix_sockets()
    assert inode(client) not in waiting
    accepted, _ = server.accept()
    with near, far, server, client, accepted:
        peers, names = unix_sockets.unix_sockets()
        assert peers[inode(near)] == inode(far)
        assert peers[inode(far)] == inode(near)
        assert peers[inode(client)] == inode(accepted)
        assert inode(server) not in peers
        assert names[inode(server)] == names[inode(accepted)] == str(tmp_path / "s")
        assert not {inode(client), inode(near), inode(far)} & set(names)


def test_an_abstract_address_begins_with_an_at_sign() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0purebpf-test")
        _, names = unix_sockets.unix_sockets()
        assert names[inode(server)] == "@purebpf-test"


def test_a_kernel_that_does_not_answer_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: bytes) -> list[bytes]:
        raise OSError(request)

    monkeypatch.setattr(unix_sockets, "dump", refuse)
    assert unix_sockets.unix_sockets() == ({}, {})


def test_a_cut_attribute_ends_a_message() -> None:
    whole = struct.pack("<HHI", 8, 2, 77)
    assert list(sock_diag.attributes(whole + whole, 0)) == [(2, whole[4:])] * 2
    assert list(sock_diag.attributes(whole + b"\x02\x00\x02\x00", 0)) == [(2, whole[4:])]
    assert list(sock_diag.attributes(whole + b"\x08", 0)) == [(2, whole[4:])]


def test_a_watch_keeps_what_earlier_looks_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [({5: 6, 6: 5}, {6: "/run/s"}), ({7: 8}, {})]
    monkeypatch.setattr(unix_sockets, "unix_sockets", lambda: looks.pop(0))
    monkeypatch.setattr(unix_sockets, "_REST", 0)
    watch = unix_sockets.UnixWatch()
    watch.tick()
    watch.tick()
    assert (watch.peers, watch.names) == ({5: 6, 6: 5, 7: 8}, {6: "/run/s"})


def test_a_watch_rests_after_a_look_that_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [({5: 6}, {}), ({7: 8}, {})]
    monkeypatch.setattr(unix_sockets, "unix_sockets", lambda: looks.pop(0))
    monkeypatch.setattr(unix_sockets, "_REST", 1e9)
    watch = unix_sockets.UnixWatch()
    watch.tick()
    watch.tick()
    assert watch.peers == {5: 6}
