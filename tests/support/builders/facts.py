"""Facts of small incidents, for tests of rules."""

from __future__ import annotations

from purebpf.findings.facts import Activity, Facts, Process, StackFrame, ThreadTime

PYTHON = "/usr/bin/python3.11"
APP = "/srv/shop/app.py"
KERNEL = {
    "futex": ("futex_do_wait", "__futex_wait", "futex_wait", "__x64_sys_futex"),
    "clock_nanosleep": ("hrtimer_nanosleep", "__x64_sys_clock_nanosleep"),
    "recvfrom": ("wait_woken", "sk_wait_data", "tcp_recvmsg_locked", "tcp_recvmsg"),
    "epoll_wait": ("ep_poll", "do_epoll_wait", "__x64_sys_epoll_wait"),
    "write": ("anon_pipe_write", "vfs_write", "__x64_sys_write"),
    "wait4": ("do_wait", "kernel_wait4", "__x64_sys_wait4"),
    "fsync": ("jbd2_log_wait_commit", "ext4_sync_file", "__x64_sys_fsync"),
}


def own(name: str, line: int = 10, file: str = APP) -> StackFrame:
    """A function of a Python program."""
    return StackFrame(name, file, line, "python")


def library(name: str, file: str = "/usr/lib/python3.11/threading.py") -> StackFrame:
    """A function of Python's library."""
    return StackFrame(name, file, 5, "python")


def native(name: str, module: str = "/usr/lib/x86_64-linux-gnu/libc.so.6") -> StackFrame:
    """A function of a native file."""
    return StackFrame(name, module, 0, "user")


THREAD = (library("Thread.run"), library("Thread._bootstrap_inner"), library("Thread._bootstrap"))
LOCKING = (native("__new_sem_wait_slow64"), native("PyThread_acquire_lock_timed", PYTHON))


def waiting(
    pid: int, tid: int, call: str, *user: StackFrame, seconds: float = 9.0, **more: object
) -> Activity:
    """A thread that waits in a system call."""
    values = {"state": "S", "argument": 0x1000, **more}
    return Activity(
        pid,
        tid,
        "worker",
        "wait",
        kernel=KERNEL[call],
        user=user,
        call=call,
        seconds=seconds,
        **values,
    )  # type: ignore[arg-type]


def running(
    pid: int, tid: int, *user: StackFrame, seconds: float = 5.0, comm: str = "app"
) -> Activity:
    """A thread that uses a CPU."""
    return Activity(pid, tid, comm, "cpu", "", seconds, (), user)


def facts(*activities: Activity, exe: str = PYTHON, **more: object) -> Facts:
    """Ten seconds of a process for each of these activities' PIDs."""
    pids = dict.fromkeys(activity.pid for activity in activities)
    processes = tuple(Process(pid, 1, f"app{pid}", exe) for pid in pids)
    cpu = [one for one in activities if one.kind == "cpu"]
    threads = tuple(ThreadTime(one.pid, one.tid, one.seconds, 0.0) for one in cpu)
    values = {"processes": processes, "threads": threads, **more}
    return Facts(10.0, 2, activities=activities, **values)  # type: ignore[arg-type]
