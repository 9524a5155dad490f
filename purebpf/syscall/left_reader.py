"""Reads that may never end, in a child process that purebpf can leave behind.

A read of /proc/PID/mem or /proc/PID/cmdline faults in pages of the process. One that lies in a file
of a FUSE is there when the user who runs that file system answers, and once he has been asked, not
even SIGKILL ends the wait: request_wait_answer() of fs/fuse/dev.c. So another process has to wait.
"""

from __future__ import annotations

import os
import struct
import time
from _thread import allocate_lock  # threading, which gives the same, takes a millisecond
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from purebpf.syscall.descriptor import keep_only
from purebpf.syscall.fork import fork

if TYPE_CHECKING:
    import socket

__all__ = ["PATIENCE_S", "LeftReader"]

PATIENCE_S = 2.0
"""How long a read may take. Pages that are swapped out come back in a fraction of it."""
_MOST_OF_USER = 2
_MOST = 8
"""Children that are left behind in an hour for the processes of one user, and in all: each keeps a
little memory until the file system ends.
"""
_FORGIVEN_S = 3600
_REQUEST = struct.Struct("=QQ")
_HEAD = struct.Struct("=Q")
_PIECE = 1 << 20
_REAPING_S = 0.2


class LeftReader:
    """Reads descriptors in a child: started when it is first needed, and again after a fork.

    Any thread may read; one reads at a time.
    """

    def __init__(self) -> None:
        self._left: list[tuple[float, int, int]] = []  # when, for which user, PID
        self._lock = allocate_lock()
        self._users = 0
        self._is_used = False
        self._child = self._parent = 0
        self._socket: socket.socket | None = None

    def enter(self) -> None:
        """Keep the child until `leave()` is called as often as this."""
        with self._lock:
            self._users += 1

    def start_again(self) -> None:
        """Start the child before it is needed, if it was since this was called: a millisecond.

        For who has entered.
        """
        is_used, self._is_used = self._is_used, False
        with self._lock, suppress(OSError):
            if is_used and (self._socket is None or self._parent != os.getpid()):
                self._start()

    def leave(self) -> None:
        """End the child with the last that needs it."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._end()

    def read(self, fd: int, size: int, offset: int, user: int) -> bytes | None:
        """Return the result of pread(2) on a descriptor, b"" where it fails; None: it did not end
        in time.

        After two reads that waited, nothing more is read for that user within an hour; after eight,
        for no user.
        """
        if not (0 <= offset < 1 << 64 and 0 <= size < 1 << 63):
            return b""
        self._is_used = True
        with self._lock:
            unanswered = self._unanswered()
            if unanswered[user] >= _MOST_OF_USER or unanswered.total() >= _MOST:
                return None
            try:
                if self._socket is None or self._parent != os.getpid():
                    self._start()
                assert self._socket is not None
                from socket import send_fds  # no reader before the first child needs it

                send_fds(self._socket, [_REQUEST.pack(size, offset)], [fd])
                (length,) = _HEAD.unpack(self._receive(_HEAD.size))
                return self._receive(length)
            except TimeoutError:
                self._left.append((time.monotonic(), user, self._child))
                self._end()
                return None
            except OSError:  # it was killed, or there can be no more processes
                self._end()
                return b""
            except BaseException:  # Ctrl-C: what the child says now belongs to no request
                self._end()
                raise

    def _unanswered(self) -> Counter[int]:
        """Reads of the last hour that did not end, by the user whom they were for."""
        if not self._left:
            return Counter()
        now = time.monotonic()
        for when, _, child in self._left:
            if when < now - _FORGIVEN_S:
                with suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)
        self._left = [left for left in self._left if left[0] >= now - _FORGIVEN_S]
        return Counter(user for _, user, _ in self._left)

    def _start(self) -> None:
        if self._socket is not None:
            self._socket.close()  # the parent's, which goes on with it
            self._socket = None
        import signal  # before the fork: the child blocks signals at once
        from socket import socketpair

        ours, theirs = socketpair()
        try:
            child = fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if not child:
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                _serve(theirs)
            finally:
                os._exit(1)
        theirs.close()
        ours.settimeout(PATIENCE_S)
        self._socket, self._child, self._parent = ours, child, os.getpid()

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        content = bytearray()
        while len(content) < size:
            piece = self._socket.recv(min(size - len(content), _PIECE))
            if not piece:
                raise ConnectionResetError
            content += piece
        return bytes(content)

    def _end(self) -> None:
        """End the child; leave one behind that waits for a file system."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        if self._parent != os.getpid():
            return
        from signal import SIGKILL

        with suppress(OSError):
            os.kill(self._child, SIGKILL)
        _reap(self._child)


def _reap(child: int) -> None:
    """Wait for the end of a child that was killed, unless it waits for a file system."""
    until = time.monotonic() + _REAPING_S
    with suppress(ChildProcessError):
        while not os.waitpid(child, os.WNOHANG)[0] and time.monotonic() < until:
            time.sleep(0.001)


def _serve(theirs: socket.socket) -> None:
    """In the child: answer until there are no more requests. It keeps no other descriptor."""
    keep_only(theirs.fileno())
    import socket

    with socket.socket(fileno=0) as requests:
        while True:
            request, fds, _, _ = socket.recv_fds(requests, _REQUEST.size, 1)
            if not request:
                os._exit(0)
            size, offset = _REQUEST.unpack(request)
            try:
                content = os.pread(fds[0], size, offset)
            except (OSError, OverflowError, MemoryError):
                content = b""
            os.close(fds[0])
            requests.sendall(_HEAD.pack(len(content)) + content)
