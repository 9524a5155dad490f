"""Files of /proc and /sys, as text.

A process may end at any moment: its readers then return None. Bytes that are not UTF-8 (file
names are bytes) survive as surrogate escapes.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from purebpf.errors import FormatError, KernelError, NotSupportedError

__all__ = [
    "KALLSYMS",
    "cgroup",
    "children",
    "comm",
    "command_line",
    "cpu_list",
    "cpu_numbers",
    "descriptor",
    "hides",
    "idle_seconds",
    "in_first_namespace",
    "in_first_pid_namespace",
    "in_first_user_namespace",
    "kallsyms",
    "kernel_stack",
    "lockdown",
    "map_is_frozen",
    "maps",
    "mounts",
    "open_memory",
    "owner",
    "parse_cpu_list",
    "pids",
    "program",
    "read",
    "real_user",
    "start_ticks",
    "start_time",
    "status",
    "sysctl",
    "threads",
    "uid_map",
    "version_signature",
    "with_memory",
]

KALLSYMS = "/proc/kallsyms"
PROC = "/proc"
SYS = "/sys"
BOOT = "/boot"

_GONE = (errno.ENOENT, errno.ESRCH)
_CHUNK = 1 << 16
_ARGUMENTS_START = 45
"""The field arg_start of /proc/PID/stat, counted from the one behind the name."""
_OF_PROCESSES = tuple(f"{PROC}/{digit}" for digit in range(1, 10))
_PIDS = 1 << 22  # PID_MAX_LIMIT
_FIRST_NAMESPACES = {"cgroup": 0xEFFFFFFB, "pid": 0xEFFFFFFC, "user": 0xEFFFFFFD}
"""PROC_CGROUP_INIT_INO and its like of include/linux/proc_ns.h."""


def read(path: str) -> str | None:
    """The file's text, None when it (or its process) does not exist, or /proc hides the process.

    Lines end with a newline alone: a carriage return is a part of a name, which the kernel does not
    escape (seq_file_path() of fs/seq_file.c). So split the text at newlines:
    str.splitlines() would take a name apart.

    Raises:
        KernelError: it exists and cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if _is_none(error, path):
            return None
        raise KernelError(f"read({path})", error.errno or 0) from None
    try:
        parts = [*iter(partial(os.read, fd, _CHUNK), b"")]
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise KernelError(f"read({path})", error.errno or 0) from None
    finally:
        os.close(fd)
    return b"".join(parts).decode("utf-8", "surrogateescape")


def _is_none(error: OSError, path: str) -> bool:
    """Return True if opening a file failed because there is none, or because its process is hidden.

    With hidepid=1, the kernel lists other users' processes and refuses all below with EPERM
    (proc_pid_permission() of fs/proc/base.c); a file that root alone may read is EACCES.
    """
    if error.errno in _GONE:
        return True
    return error.errno == errno.EPERM and path.startswith(_OF_PROCESSES)


def pids() -> list[int]:
    """The processes of this pid namespace."""
    return [int(name) for name in os.listdir(PROC) if name.isdecimal()]


def threads(pid: int) -> list[int]:
    """The threads of a process; none when it has ended.

    The result omits a first thread that has called pthread_exit() if others go on.
    """
    tids = _tasks(pid)
    if len(tids) > 1 and with_memory(pid) != pid:
        tids.remove(pid)
    return tids


def _tasks(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"{PROC}/{pid}/task")]
    except OSError:
        return []


def with_memory(pid: int) -> int:
    """The number whose folder in /proc shows the memory, program and root of a process.

    Usually it is `pid`. When the first thread has called pthread_exit() while others go on, the
    folder of the process is a zombie's and shows none of them; the folder of another thread does.
    """
    if not _has_no_program(pid):
        return pid
    others = (tid for tid in _tasks(pid) if tid != pid)
    return next((tid for tid in others if not _has_no_program(tid)), pid)


def _has_no_program(pid: int) -> bool:
    """Return True for a zombie and a thread of the kernel."""
    return _program_of_task(pid) is None


def program(pid: int) -> str | None:
    """The path of a process's program; None for a zombie and a thread of the kernel.

    It is "" if the program is not ours to see. Most processes of a machine have none, so that this
    saves to read the rest of them.
    """
    path = _program_of_task(pid)
    if path is not None:
        return path
    others = (_program_of_task(tid) for tid in _tasks(pid) if tid != pid)
    return next((path for path in others if path is not None), None)


def _program_of_task(tid: int) -> str | None:
    try:
        return os.readlink(f"{PROC}/{tid}/exe")
    except OSError as error:
        return None if error.errno == errno.ENOENT else ""


def children(pid: int) -> list[int]:
    """The children of a process, oldest first for each of its threads (CONFIG_PROC_CHILDREN)."""
    lists = (read(f"{PROC}/{pid}/task/{tid}/children") or "" for tid in threads(pid))
    return [int(child) for line in lists for child in line.split()]


def status(pid: int | str = "self") -> dict[str, str] | None:
    """/proc/PID/status by name: `status()["CapEff"] == "000001ffffffffff"`."""
    text = read(f"{PROC}/{pid}/status")
    if text is None:
        return None
    rows = (line.partition(":") for line in text.split("\n") if line)
    return {name: value.strip() for name, _, value in rows}


def parent(pid: int) -> int | None:
    """Return the parent of a process: PPid in its status, without parsing the rest.

    No name can pretend to be that line: the kernel escapes the ends of lines in names.
    """
    _, _, after = (read(f"{PROC}/{pid}/status") or "").partition("\nPPid:\t")
    number = after.partition("\n")[0]
    return int(number) if number else None


def real_user(pid: int) -> int | None:
    """Return the owner of a process: the real user id in its status, without parsing the rest."""
    _, _, after = (read(f"{PROC}/{pid}/status") or "").partition("\nUid:\t")
    number = after.split("\t", 1)[0]
    return int(number) if number else None


def other_user(pid: int) -> int | None:
    """The user of a process who is not root or ourselves; those do not harm themselves.

    Decide by its status: files in /proc/PID belong to root if the process is not dumpable.
    """
    _, _, after = (read(f"{PROC}/{pid}/status") or "").partition("\nUid:\t")
    users = {int(word) for word in after.partition("\n")[0].split()}
    return next(iter(sorted(users - {0, os.geteuid()})), None)


def maps(pid: int | str) -> str | None:
    """/proc/PID/maps: one line a mapping; empty for a kernel thread.

    None also for another user's process that does not let its mappings be read in time
    (`purebpf.syscall.patience`).

    Raises:
        KernelError: EACCES, the process is another user's.
    """
    if isinstance(pid, str):
        return read(f"{PROC}/{pid}/maps")
    text = _maps_of(pid)
    if text == "" and (other := with_memory(pid)) != pid:
        return _maps_of(other)
    return text


def _maps_of(pid: int) -> str | None:
    path, user = f"{PROC}/{pid}/maps", other_user(pid)
    if user is None:
        try:
            return read(path)
        except KernelError as error:
            why = "looking into it takes CAP_SYS_PTRACE, and a security module may forbid it"
            raise KernelError(error.call, error.errno or 0, f"process {pid}", why=why) from None
    from purebpf.syscall.patience import call_in_time  # threading: for other users' processes

    try:
        return call_in_time(user, partial(read, path), lambda _: None)
    except OSError:
        return None


def comm(pid: int | str) -> str | None:
    """The thread's name, at most 15 bytes."""
    text = read(f"{PROC}/{pid}/comm")
    return None if text is None else text.removesuffix("\n")


def set_comm(name: str) -> None:
    """Give the current thread a name of at most 15 bytes; without /proc it keeps the old one."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name)


def set_command_line(words: Sequence[str]) -> None:
    """Replace the words that ps(1) and pidof(8) show for this process, as far as there is room.

    The kernel reads them from the stack of the process; without /proc they stay as they are.
    """
    with suppress(OSError), open("/proc/self/mem", "r+b", buffering=0) as memory:
        fields = _read_self_stat()
        start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_START + 1])
        data = b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)
        memory.seek(start)
        memory.write(data[: end - start - 1].ljust(end - start, b"\0"))


def _read_self_stat() -> list[str]:
    """Return the fields of /proc/self/stat behind the name."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def owner(pid: int) -> int | None:
    """The process's user: root for one that made itself undumpable (proc(5))."""
    try:
        return os.stat(f"{PROC}/{pid}").st_uid
    except OSError:
        return None


def map_is_frozen(fd: int) -> bool:
    """Return True if user space may no longer write to the map behind a descriptor (Linux 5.2)."""
    text = read(f"{PROC}/self/fdinfo/{fd}") or ""
    return "frozen:\t1" in text.split("\n")


def start_ticks(pid: int) -> int | None:
    """When a process was forked, in clock ticks since boot."""
    text = read(f"{PROC}/{pid}/stat")
    return None if text is None else int(text.rpartition(")")[2].split()[19])


def start_time(pid: int) -> float | None:
    """When a process was forked, as time.time() has it, give or take a clock tick (10 ms).

    The kernel stores it as a time since boot: where the clock was set later, it is the time that
    the clock would have shown.
    """
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    since_boot = ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot


def open_memory(pid: int | str) -> int | None:
    """A descriptor of /proc/PID/mem; offsets are addresses of the process; None: no process.

    The caller closes it.

    Raises:
        KernelError: EACCES, the process is another user's.
    """
    path = f"{PROC}/{with_memory(pid) if isinstance(pid, int) else pid}/mem"
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if _is_none(error, path):
            return None
        raise KernelError(f"open({path})", error.errno or 0) from None


def descriptor(fd: int) -> str:
    """Return the target of a descriptor of this process: a path, `"anon_inode:bpf-map"`,
    `"socket:[4711]"`.

    Raises:
        KernelError: EBADF, it is none.
    """
    try:
        return os.readlink(f"{PROC}/self/fd/{fd}")
    except OSError as error:
        number = errno.EBADF if error.errno == errno.ENOENT else error.errno or 0
        raise KernelError(f"readlink({PROC}/self/fd/{fd})", number) from None


def hides(pid: int) -> bool:
    """Return True if a process lives that /proc does not show.

    It is mounted with hidepid (proc(5)), or for another pid namespace than this process's.
    """
    if not 0 < pid < _PIDS:
        return False
    try:
        os.kill(pid, 0)  # asks, and sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not os.path.exists(f"{PROC}/{pid}/stat")


def cgroup(pid: int | str) -> str | None:
    """/proc/PID/cgroup: one `id:controllers:path` line for each hierarchy (cgroups(7))."""
    return read(f"{PROC}/{pid}/cgroup")


def sysctl(name: str) -> str | None:
    """A kernel parameter by its dotted name, `"kernel.perf_event_paranoid"`; None: not here."""
    text = read(f"{PROC}/sys/{name.replace('.', '/')}")
    return None if text is None else text.strip()


def idle_seconds() -> dict[int, float]:
    """Return how long each online CPU has been idle since the boot, waiting for I/O or not
    (proc_stat(5)).

    Exact to a hundredth of a second; {} where /proc/stat does not tell CPUs apart.
    """
    fields = [line.split() for line in (read(f"{PROC}/stat") or "").split("\n")]
    ticks = os.sysconf("SC_CLK_TCK")
    return {
        int(name[3:]): (int(numbers[3]) + int(numbers[4])) / ticks
        for name, *numbers in filter(None, fields)
        if name.startswith("cpu") and name[3:].isdigit()
    }


def uid_map(pid: int | str = "self") -> str | None:
    """The user namespace's mapping, `"0 0 4294967295"` in the first one (user_namespaces(7))."""
    text = read(f"{PROC}/{pid}/uid_map")
    return (
        None
        if text is None
        else "; ".join(" ".join(row.split()) for row in text.split("\n") if row)
    )


def in_first_namespace(kind: str) -> bool:
    """Return True if this process is in the machine's first "cgroup", "pid" or "user" namespace.

    Raises:
        OSError: there is no /proc that says so.
    """
    return os.stat(f"{PROC}/self/ns/{kind}").st_ino == _FIRST_NAMESPACES[kind]


def in_first_user_namespace() -> bool:
    """Return True if this process is only in the first user namespace; also where /proc hides
    it.
    """
    try:
        return os.stat(f"{PROC}/self/ns/user").st_ino == _FIRST_NAMESPACES["user"]
    except OSError:
        return True


def in_first_pid_namespace() -> bool:
    """Return True if process numbers are the initial PID namespace's; False where /proc hides
    it.
    """
    try:
        return in_first_namespace("pid")
    except OSError:
        return False


def mounts() -> list[tuple[str, str]]:
    """This process's mounts, in order: (mount point, file system type)."""
    text = read(f"{PROC}/self/mounts") or ""
    rows = (line.split(" ") for line in text.split("\n") if line)
    return [(_unescape(row[1]), row[2]) for row in rows]


def _unescape(path: str) -> str:
    """Undo the octal escapes of /proc/mounts (getmntent(3))."""
    for octal, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        path = path.replace(octal, char)
    return path


def kallsyms(size: int = -1) -> bytes:
    """/proc/kallsyms: the symbols of this kernel, its modules and BPF programs, a line each.

    All of it, or so many bytes.

    Raises:
        KernelError: it does not exist, or cannot be read.
    """
    try:
        with open(KALLSYMS, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise KernelError(f"read({KALLSYMS})", error.errno or 0) from None


def modules() -> bytes:
    """/proc/modules: the loaded modules, a line each; empty where it cannot be read."""
    try:
        with open(f"{PROC}/modules", "rb") as file:
            return file.read()
    except OSError:
        return b""


def cpu_list(kind: str) -> str | None:
    """The CPU list "possible", "online" or "present": `"0-3,8-11"` (cputopology.rst)."""
    text = read(f"{SYS}/devices/system/cpu/{kind}")
    return None if text is None else text.strip()


def cpu_numbers(kind: str) -> tuple[int, ...]:
    """The numbers of the CPUs in a list such as `0-3,8`.

    Raises:
        NotSupportedError: the list is not there.
        FormatError: it is none.
    """
    text = cpu_list(kind)
    if not text:
        raise NotSupportedError(
            f"the {kind} CPUs", f"{SYS}/devices/system/cpu/{kind} does not exist"
        )
    return parse_cpu_list(text)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The numbers in a CPU list: `"0-3,8"` is (0, 1, 2, 3, 8); an empty list is ().

    Raises FormatError for anything else (Documentation/admin-guide/cputopology.rst).
    """
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else not last)):
            raise FormatError("CPU list", repr(text), f"{part!r} is not a number or a range")
        cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def lockdown() -> str | None:
    """The lockdown mode in force: "none", "integrity" or "confidentiality"; None: not built in.

    Without securityfs there is no way to tell, and that is None too (kernel_lockdown(7)).
    """
    text = read(f"{SYS}/kernel/security/lockdown")
    if text is None:
        return None
    return text.partition("[")[2].partition("]")[0]


def kernel_config() -> str | None:
    """The configuration this kernel was built with, as in .config: its own, or that in /boot.

    None when there is neither /proc/config.gz (CONFIG_IKCONFIG_PROC) nor /boot/config-RELEASE.

    Raises:
        KernelError: it exists and cannot be read.
    """
    path = f"{PROC}/config.gz"
    try:
        with open(path, "rb") as file:
            packed = file.read()
    except OSError as error:
        if error.errno not in _GONE:
            raise KernelError(f"read({path})", error.errno or 0) from None
        return read(f"{BOOT}/config-{os.uname().release}")
    import zlib

    return zlib.decompress(packed, wbits=zlib.MAX_WBITS | 16).decode(errors="surrogateescape")


def version_signature() -> str | None:
    """Return Ubuntu's own description of its kernel: `"Ubuntu 5.4.0-12.15-generic 5.4.8"`."""
    return read(f"{PROC}/version_signature")


def command_line(pid: int) -> str | None:
    """The arguments of a process, with blanks between them; "" for a kernel thread."""
    text = read(f"{PROC}/{pid}/cmdline")
    if text == "" and (other := with_memory(pid)) != pid:
        text = read(f"{PROC}/{other}/cmdline")
    return None if text is None else text.replace("\0", " ").strip()


def kernel_stack(pid: int, tid: int) -> str | None:
    """Return a thread's kernel stack, a function a line, innermost first.

    Needs CAP_SYS_ADMIN, and CONFIG_STACKTRACE; None: no such thread, or no such file.

    Raises:
        KernelError: EACCES, no CAP_SYS_ADMIN.
    """
    return read(f"{PROC}/{pid}/task/{tid}/stack")
