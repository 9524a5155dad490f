"""`describe_kind`: the activity of a thread in words."""

from __future__ import annotations

__all__ = ["describe_kind"]

_WAITS = {
    "sock-read": "waits for an answer",
    "connect": "waits for a connection",
    "sleep": "sleeps",
    "nap": "sleeps in a library that tries again",
    "fsync": "waits for fsync",
    "disk": "waits for the disk",
    "pipe-write": "waits to write a full pipe (pipe_write)",
    "pipe-read": "waits to read a pipe",
    "sock-write": "waits to write a full socket",
    "lock": "waits for a lock",
    "cond": "waits to be woken",
    "queue-full": "waits for room in a queue",
    "permit": "waits for a permit",
    "turn": "waits for its turn",
    "result": "waits for a result",
    "barrier": "waits at a barrier",
    "gil": "waits for the GIL",
    "child": "waits for a child process",
    "file-lock": "waits for the lock of a file",
    "epoll": "waits for events",
    "cpu": "runs",
    "queue": "waits for a CPU",
    "dns": "waits for a name server (getaddrinfo)",
    "accept": "waits for a connection to accept",
    "poll": "waits for descriptors",
    "tty": "waits for the terminal",
    "signal": "waits for a signal",
    "join": "waits for a thread to end",
    "kernel-lock": "waits for a lock in the kernel",
    "jvm-monitor": "waits for the monitor of a Java object",
    "java-park": "is parked by the JVM",
    "go-park": "is parked by Go's scheduler",
    "ruby-mutex": "waits for a Mutex",
    "ruby-gvl": "waits for Ruby's lock (GVL)",
    "nested-loop": "waits inside of an event loop",
    "database-lock": "waits for a lock of the database (ProcSleep)",
    "standby": "waits until a standby of the database has its data (SyncRepWaitForLSN)",
    "memory-limit": "waits for memory below the limit of its cgroup",
    "dirty-pages": "waits for the disk to take dirty pages",
    "semaphore": "waits for a semaphore",
    "io-uring": "waits for io_uring",
    "answer": "waits for an answer",
    "connection": "waits for a connection of a pool",
    "network": "waits for the network",
    "channel-send": "waits to send to a channel",
    "channel-receive": "waits to receive from a channel",
    "select": "waits in a select",
    "goroutines": "waits for other goroutines",
    "write": "waits to write",
    "stopped": "is stopped",
    "call": "waits in a system call",
    "reclaim": "waits for free memory",
    "remote-file": "waits for a file server",
    "request": "waits for the kernel's next request or event",
}


def describe_kind(kind: str) -> str:
    """Describe the activity of a thread by its kind: "waits for a lock"."""
    return _WAITS.get(kind, "waits" if kind == "other" else f"waits ({kind})")
