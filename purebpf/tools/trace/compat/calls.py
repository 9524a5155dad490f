"""The kinds of the arguments of i386 calls that differ from the native call. Pure.

A line for each call, as in tools/trace/calls.py. `ll` is a number of 64 bits in two arguments,
its low half first, `hl` its high half first.
"""

from __future__ import annotations

__all__ = ["CALLS", "FIRST_SOCKET_CALL", "SAME_ARGUMENTS", "SOCKET_CALLS", "native_name"]

CALLS = """\
_llseek fd hl - offset1> E:whence
chown path oldid oldid
fadvise64 fd ll - size E:fadvise
fadvise64_64 fd ll - ll - E:fadvise
fallocate fd F:fallocate ll - ll -
fanotify_mark fd hex ll - dirfd path
fchown fd oldid oldid
fstatfs64 fd size S:statfs>
ftruncate64 fd ll -
getgroups int ptr
getresgid ptr ptr ptr
getresuid ptr ptr ptr
lchown path oldid oldid
nice int
pread64 fd buf>r size ll -
preadv fd iov>r2 ulong ll -
preadv2 fd iov>r2 ulong ll - F:rwf
pwrite64 fd buf<2 size ll -
pwritev fd iov<2 ulong ll -
pwritev2 fd iov<2 ulong ll - F:rwf
readahead fd ll - size
recv fd buf>r size F:msg
send fd buf<2 size F:msg
set_thread_area userdesc<>
setgid oldid
setgroups int ptr
setregid oldid oldid
setresgid oldid oldid oldid
setresuid oldid oldid oldid
setreuid oldid oldid
setuid oldid
signal signal handler
sigreturn sigframe
socketcall socketcall ptr
statfs64 path size S:statfs>
sync_file_range fd ll - ll - F:sync_range
truncate64 path ll -
umount path
waitpid int status> F:wait
"""

_OTHER_NAMES = {
    "_newselect": "select",
    "fcntl64": "fcntl",
    "fstat64": "fstat",
    "fstatat64": "newfstatat",
    "lstat64": "lstat",
    "mmap2": "mmap",
    "sendfile64": "sendfile",
    "stat64": "stat",
    "ugetrlimit": "getrlimit",
}

SAME_ARGUMENTS = frozenset({"mmap", "select"})
"""Calls of i386 that take the address of their arguments."""

_SUFFIXES = ("_time64", "64", "32")


def native_name(name: str, native: frozenset[str]) -> str:
    """Return the native call with the same arguments, or the call's own name.

    Args:
        name: of a call of i386.
        native: the described native calls.
    """
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    if name in native:
        return name
    names = (name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix))
    return next((shorter for shorter in names if shorter in native), name)


FIRST_SOCKET_CALL = 489
"""What is added to the first argument of socketcall(2): numbers that i386 does not use."""

SOCKET_CALLS = (
    "socket", "bind", "connect", "listen", "accept", "getsockname", "getpeername", "socketpair",
    "send", "recv", "sendto", "recvfrom", "shutdown", "setsockopt", "getsockopt", "sendmsg",
    "recvmsg", "accept4", "recvmmsg", "sendmmsg",
)  # fmt: skip
"""What socketcall(2) does, from 1 on: include/uapi/linux/net.h."""
