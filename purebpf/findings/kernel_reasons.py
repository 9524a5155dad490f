"""The reason for a wait, by the kernel's functions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from purebpf.late_pattern import compile_later

__all__ = ["call_of", "is_call_without_wait", "is_in_connect", "is_in_fsync", "kind_by_kernel"]

_BY_KERNEL = tuple(
    (kind, compile_later(rf"_*(x64_sys_|do_|se_sys_)?({pattern})"))
    for kind, pattern in (
        ("futex", r"futex_"),
        ("sleep", r"hrtimer_nanosleep|nanosleep|common_nsleep"),
        ("epoll", r"epoll_wait|ep_poll"),
        ("pipe-read", r"(anon_)?pipe_read|fifo_open|wait_for_partner"),
        ("pipe-write", r"(anon_)?pipe_write"),
        ("accept", r"\w*_accept$|inet_csk_wait_for_connect"),
        ("child", r"wait$|kernel_wait|kernel_waitid|wait4"),
        ("signal", r"sigsuspend|sigtimedwait|sys_pause|pause$|signalfd_"),
        ("tty", r"n_tty_|tty_read"),
        (
            "sock-write",
            r"sk_stream_wait_memory|sock_alloc_send_pskb|sock_wait_for_wmem|unix_wait_for_peer",
        ),
        (
            "sock-read",
            r"(tcp|udp|inet|unix_\w*)_recvmsg|sk_wait_data|unix_stream_(read|data)|__?skb_(wait|recv)",
        ),
        ("connect", r"inet_(stream_|wait_for_)?connect|unix_stream_connect"),
        ("file-lock", r"flock_lock|posix_lock|locks_lock|fcntl_setlk"),
        (
            "fsync",
            r"\w*fsync|\w+_sync_file|jbd2_(log_wait|complete)|file_write_and_wait|\w+_log_force",
        ),
        ("queue-full", r"mq_timedsend|msg_?snd"),
        ("semaphore", r"semtimedop|msg_?rcv|mq_timedreceive|eventfd_read"),
        ("io-uring", r"io_cqring_wait|io_wq"),
        ("request", r"fuse_dev_|fanotify_read|inotify_read"),
        ("remote-file", r"rpc_wait_bit|nfs4?_wait|request_wait_answer|fuse_|cifs_|p9_client|ceph_"),
        (
            "memory-limit",
            r"mem_cgroup_handle_over|try_charge|try_to_free_mem_cgroup|mem_cgroup_oom",
        ),
        ("reclaim", r"reclaim_throttle|throttle_direct_reclaim|shrink_(node|lruvec)"),
        ("reclaim", r"do_try_to_free_pages|__alloc_pages_direct|congestion_wait|compact_zone"),
        ("dirty-pages", r"balance_dirty_pages"),
        ("kernel-lock", r"rwsem_down|mutex_lock|__mutex|percpu_rwsem|down_(read|write)"),
        ("disk", r"io_schedule|folio_wait|submit_bio|blk_|blkdev|iomap|bio_wait|swap_read"),
        ("disk", r"rq_qos_wait|wbt_wait|jbd2_|wait_transaction_locked|start_this_handle|lock_page"),
        ("disk", r"(ext4|xfs|btrfs)_"),
        ("poll", r"sys_poll|do_select|select|poll"),
        ("stopped", r"signal_stop|ptrace_stop|cgroup_freeze|freezer_trap|refrigerator"),
    )
)
_FSYNC = dict(_BY_KERNEL)["fsync"]
_CONNECT = dict(_BY_KERNEL)["connect"]
_DEPTH = 14
"""Kernel frames that are looked at."""
_NO_WAITS = frozenset(
    {
        *("open", "openat", "close", "stat", "lstat", "fstat", "newfstatat", "statx", "access"),
        *("unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir"),
        *("link", "symlink", "readlink", "getdents64", "truncate", "ftruncate", "fallocate"),
        *("mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "mlock", "membarrier"),
        *("execve", "clone", "clone3", "fork", "mount", "umount2", "setns", "unshare"),
        *("shutdown", "bind", "listen", "socket", "setsockopt", "getsockopt", "chmod", "chown"),
        *("epoll_ctl", "eventfd2", "timerfd_create", "bpf", "init_module", "finit_module"),
    }
)
"""Calls that nobody makes in order to wait."""
_CALL = compile_later(r"__(?:x64|arm64|ia32|se)_sys_(\w+)$")


def kind_by_kernel(kernel: Sequence[str]) -> str:
    """Return the kind of a wait by functions, innermost first; "futex" and "other" are vague."""
    for name in kernel[:_DEPTH]:
        for kind, pattern in _BY_KERNEL:
            if pattern.match(name):
                return kind
    return "other"


def call_of(kernel: Sequence[str]) -> str:
    """The system call of a thread, by the kernel's functions; "" if they do not show it."""
    return next((match[1] for name in kernel if (match := _CALL.match(name))), "")


def is_call_without_wait(call: str) -> bool:
    """Return True for a system call that nobody makes in order to wait."""
    return call in _NO_WAITS


def is_in_connect(kernel: Sequence[str]) -> bool:
    """Return True for the kernel's functions of a thread in connect(2)."""
    return any(map(_CONNECT.match, kernel))


def is_in_fsync(kernel: Sequence[str]) -> bool:
    """Return True for the kernel's functions of a thread in fsync(2), which may run, too: it starts
    the writes.
    """
    return any(map(_FSYNC.match, kernel))
