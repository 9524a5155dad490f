"""`WaitReasons`: the program of bpf_src/waits.bpf.c, which says why threads wait, without stacks.

Needs BTF tracepoints, bpf_task_pt_regs() (Linux 5.15, commit dd6e10fbd9fb) and storage of tasks
(Linux 5.11, commit 4cf1bc1f1045).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from purebpf import objects
from purebpf.abi import syscalls
from purebpf.closable import Closing
from purebpf.findings.facts import (
    CallCount,
    Connect,
    End,
    Endpoint,
    PathCount,
    SignalCount,
    Start,
    WaitSum,
    WakerSum,
)
from purebpf.loader.load.load import load

__all__ = ["WaitReasons", "call_name"]

_FUTEX, _POLL, _TIMED, _BYTES, _PATH, _PATH_AT, _FD, _ADDRESS = (1 << bit for bit in range(8))
"""enum call_kind."""
_KINDS = {
    _FUTEX: ("futex", "futex_wait"),
    _POLL: ("poll", "ppoll"),
    _TIMED: ("nanosleep", "clock_nanosleep"),
    _BYTES | _FD: (
        *("read", "write", "pread64", "pwrite64", "readv", "writev", "sendto", "recvfrom"),
        *("sendmsg", "recvmsg"),
    ),
    _PATH: ("open", "stat", "lstat", "access", "readlink", "unlink", "mkdir"),
    _PATH_AT: (
        *("openat", "newfstatat", "statx", "faccessat", "faccessat2", "readlinkat", "openat2"),
        *("unlinkat", "mkdirat"),
    ),
    _FD: (
        *("connect", "accept", "accept4", "fsync", "fdatasync", "flock", "fcntl", "close"),
        *("epoll_wait", "epoll_pwait", "sync_file_range", "getdents64", "ioctl", "sendfile"),
        *("recvmmsg", "sendmmsg", "fallocate", "ftruncate"),
    ),
    _ADDRESS: ("connect",),
}
_CALLS = 512
_BUSY = 100_000
"""Calls a second from which on only some are counted."""
_ENDPOINTS = ("", "file", "pipe", "socket")
_FAMILIES = {2: "inet", 10: "inet6"}


def call_name(number: int) -> str:
    """The name of a system call; "" for none, which a page fault or an exit is."""
    if not 0 <= number < _CALLS:
        return ""
    return syscalls.name(_abi(), number)


def _abi() -> str:
    return syscalls.machine(os.uname().machine).native


class WaitReasons(Closing):
    """Counts from `start()` to `stop()`.

    Args:
        namespace: our PID namespace, as `PidNamespace`.

    Raises:
        KernelError: the kernel refused a program.
        NotSupportedError: it does not show its types.
    """

    def __init__(self, namespace: tuple[int, int] = (0, 0)) -> None:
        spec = objects.spec("waits").set(
            own_tgid=os.getpid(),
            call_kinds=_call_kinds(),
            pid_namespace_dev=namespace[0],
            pid_namespace_ino=namespace[1],
        )
        with ExitStack() as undo:
            from purebpf.observe.instruments.sched_compat import adapt  # not for `call_name`

            self._loaded = undo.enter_context(load(adapt(spec)))
            self._loaded.attach()
            self._closing = undo.pop_all()
        self._counted = 0

    def start(self) -> None:
        """Count from now on."""
        self._loaded.globals["is_on"] = 1

    def thin_out(self, elapsed_s: float) -> None:
        """Count fewer calls where there were very many since this was last called."""
        counted = sum(each.count for sums in self._maps["calls"].values() for each in sums)
        rate, self._counted = (counted - self._counted) / max(0.1, elapsed_s), counted
        thinned = max(0, int(rate / _BUSY).bit_length())
        self._loaded.globals["thinned"] = min(6, thinned)

    def stop(self) -> None:
        """Count no more."""
        self._loaded.globals["is_on"] = 0

    @property
    def _maps(self) -> Any:
        return self._loaded.maps

    @property
    def lost(self) -> dict[str, int]:
        """Sums that found no room, by map."""
        sums: dict[str, int] = {}
        for stats in self._maps["wait_stats"][0]:
            for name, count in stats._asdict().items():
                sums[name] = sums.get(name, 0) + count
        return sums

    def waits(self) -> Iterator[WaitSum]:
        """Yield the waits that ended. Raises KernelError, as do the other methods."""
        for key, value in self._maps["waits"].items():
            yield WaitSum(
                *(key.tgid, key.tid, call_name(key.call), key.argument, key.fd, key.owner),
                *(_endpoint(key.endpoint), value.ns / 1e9, value.count, value.longest_ns / 1e9),
            )

    def wakers(self) -> Iterator[WakerSum]:
        """Yield the wakers that ended the longer waits."""
        for key, value in self._maps["wakers"].items():
            yield WakerSum(
                *(key.tid, call_name(key.call), key.waker_tgid, key.waker_tid),
                *(value.ns / 1e9, value.count),
            )

    def calls(self) -> Iterator[CallCount]:
        """System calls by process and result."""
        for key, sums in self._maps["calls"].items():
            times, size = sum(each.count for each in sums), sum(each.bytes for each in sums)
            fd = max(each.fd for each in sums)
            yield CallCount(key.tgid, call_name(key.call), key.error, times, size, fd)

    def paths(self) -> Iterator[PathCount]:
        """Paths of calls."""
        for key, times in self._maps["paths"].items():
            path = _text(key.path)
            yield PathCount(key.tgid, call_name(key.call), path, times)

    def connects(self) -> Iterator[Connect]:
        """TCP connections by peer."""
        for key, times in self._maps["connects"].items():
            endpoint = _endpoint(key.endpoint)
            yield Connect(key.tgid, key.error, endpoint.address, endpoint.port, times)

    def starts(self) -> Iterator[Start]:
        """Programs executed and processes forked, by parent."""
        for key, times in self._maps["starts"].items():
            names = _text(key.parent_comm), _text(key.comm)
            yield Start(key.parent, *names, bool(key.is_fork), times)

    def ends(self) -> Iterator[End]:
        """Processes that did not end well, by parent."""
        for key, times in self._maps["ends"].items():
            names = _text(key.parent_comm), _text(key.comm)
            yield End(key.parent, *names, key.code, times)

    def signals(self) -> Iterator[SignalCount]:
        """Signals by sender and receiver."""
        for key, times in self._maps["signals"].items():
            yield SignalCount(key.sender, key.receiver, key.signal, times)

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        self._closing.close()


def _call_kinds() -> tuple[int, ...]:
    kinds = [0] * _CALLS
    for kind, names in _KINDS.items():
        for name in names:
            number = syscalls.number(_abi(), name)
            if number is not None and number < _CALLS:
                kinds[number] |= kind
    return tuple(kinds)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return bytes(value).partition(b"\0")[0].decode(errors="backslashreplace")


def _endpoint(raw: Any) -> Endpoint:
    family = _FAMILIES.get(raw.family, "other" if raw.kind == 3 else "")  # noqa: PLR2004
    kind, address = _ENDPOINTS[raw.kind], _address(family, raw.address)
    return Endpoint(kind, family, address, raw.port, raw.local_port, raw.inode)


def _address(family: str, words: Sequence[int]) -> str:
    if family not in {"inet", "inet6"}:
        return ""
    from ipaddress import IPv4Address, IPv6Address  # 3 ms, for waits on the network

    if family == "inet":
        return str(IPv4Address(struct.pack("<I", words[0])))
    given = IPv6Address(struct.pack("<4I", *words))
    return str(given.ipv4_mapped or given)
