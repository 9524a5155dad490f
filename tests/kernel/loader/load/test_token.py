"""BPF tokens: a process that has privileges in its own user namespace only loads what it may."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import NotSupportedError
from purebpf.loader.load.token import open_token

DATA = Path(__file__).parents[3] / "data"
LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = 429, 430, 431, 432
SET_STRING, CREATE, EMPTY_PATH, HERE = 1, 6, 4, -100

pytestmark = pytest.mark.needs("bpf", "tokens")


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def configure(context: int, key: str, value: str) -> None:
    checked(LIBC.syscall(FSCONFIG, context, SET_STRING, key.encode(), value.encode(), 0))


def delegated(options: dict[str, str], then: Callable[[int], str]) -> str:
    """What `then` says of a bpf file system with these options, in a user namespace of its own."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if not child:
        ours.close()
        try:
            checked(LIBC.unshare(NEW_USER | NEW_MOUNTS))
            theirs.send(b"unshared")
            theirs.recv(16)  # the parent has mapped our user
            context = checked(LIBC.syscall(FSOPEN, b"bpf", 0))
            socket.send_fds(theirs, [b"context"], [context])
            theirs.recv(16)  # the parent has configured it
            answer = then(checked(LIBC.syscall(FSMOUNT, context, 0, 0)))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
            answer = f"{type(error).__name__}: {error}"
        theirs.send(answer.encode())
        os._exit(0)
    theirs.close()
    with ours:
        ours.recv(16)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{child}/{name}").write_text("0 0 1")
        ours.send(b"mapped")
        _, (context,), _, _ = socket.recv_fds(ours, 16, 1)
        for key, value in options.items():
            configure(context, key, value)
        checked(LIBC.syscall(FSCONFIG, context, CREATE, None, None, 0))
        os.close(context)
        ours.send(b"created")
        answer = ours.recv(4096).decode()
    os.waitpid(child, 0)
    return answer


EVERYTHING = dict.fromkeys(
    ("delegate_cmds", "delegate_maps", "delegate_progs", "delegate_attachs"), "any"
)


def load_with(token: int | str | None) -> str:
    with purebpf.load(DATA / "load_optional_map.bpf.o", token=token) as obj:
        return f"{len(obj.maps)} maps, {len(obj.programs)} programs"


def test_what_is_delegated_is_loaded():
    def then(mount: int) -> str:
        with open_token(mount) as token:
            return load_with(token.fileno())

    assert delegated(EVERYTHING, then) == "3 maps, 1 programs"


def test_the_environment_may_say_where():
    def then(mount: int) -> str:
        os.environ["LIBBPF_BPF_TOKEN_PATH"] = f"/proc/self/fd/{mount}"  # of a child that ends here
        return load_with(None)

    assert delegated(EVERYTHING, then) == "3 maps, 1 programs"


def test_a_place_without_delegation_in_the_environment_is_an_error(monkeypatch, bpffs: Path):
    monkeypatch.setenv("LIBBPF_BPF_TOKEN_PATH", str(bpffs))
    with pytest.raises(NotSupportedError, match="initial user namespace has no tokens"):
        load_with(None)
    monkeypatch.setenv("LIBBPF_BPF_TOKEN_PATH", "")
    assert load_with(None) == "3 maps, 1 programs"


def test_without_the_token_it_is_refused():
    assert "EPERM" in delegated(EVERYTHING, lambda _mount: load_with(None))


def put_in_place(mount: int) -> None:
    """Mount it where everybody looks for it."""
    checked(LIBC.syscall(MOVE_MOUNT, mount, b"", HERE, b"/sys/fs/bpf", EMPTY_PATH))


def test_what_is_delegated_at_the_usual_place_needs_no_words():
    def then(mount: int) -> str:
        put_in_place(mount)
        return load_with(None)

    assert delegated(EVERYTHING, then) == "3 maps, 1 programs"
    answer = delegated({}, then)
    assert "EPERM" in answer
    assert "load(..., token=)" in answer


@pytest.mark.parametrize("environment", [True, False])
def test_a_token_may_be_unwanted(environment: bool):
    def then(mount: int) -> str:
        put_in_place(mount)
        if environment:
            os.environ["LIBBPF_BPF_TOKEN_PATH"] = ""
        return load_with(None if environment else "")

    assert "EPERM" in delegated(EVERYTHING, then)
    assert load_with("") == "3 maps, 1 programs"


def test_what_is_not_delegated_is_refused():
    def then(mount: int) -> str:
        with open_token(mount) as token:
            return load_with(token.fileno())

    answer = delegated(EVERYTHING | {"delegate_progs": "xdp"}, then)
    assert "program 'count': bpf(BPF_PROG_LOAD) failed with EPERM" in answer


def test_where_nothing_is_delegated_there_is_no_token():
    answer = delegated({}, lambda mount: str(open_token(mount)))
    assert "mounted without any delegate_" in answer


def test_the_first_namespace_needs_none(bpffs: Path):
    with pytest.raises(NotSupportedError, match="initial user namespace has no tokens"):
        purebpf.load(DATA / "load_optional_map.bpf.o", token=bpffs)
