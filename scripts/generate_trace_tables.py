"""Generate what `purebpf trace` knows of system calls: their signatures, and names of constants.

    python scripts/generate_trace_tables.py            write both files
    python scripts/generate_trace_tables.py --check    compare with this kernel and these headers

`purebpf/abi/tables/signatures.txt` has the parameters of each call as the kernel declares them,
read from tracefs (events/syscalls/sys_enter_NAME/format). `purebpf/abi/tables/constants.txt` has
names and numbers of flags, read from installed headers: those that the kernel exports
(linux-libc-dev) and, where it exports none, those of the C library. Numbers are never given out
twice: another kernel or header knows a subset or a superset, and anything else is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SIGNATURES = ROOT / "purebpf/abi/tables/signatures.txt"
CONSTANTS = ROOT / "purebpf/abi/tables/constants.txt"
EVENTS = Path("/sys/kernel/tracing/events/syscalls")
INCLUDE = Path("/usr/include")
GLIBC = "x86_64-linux-gnu/bits"
ARCH = "x86_64-linux-gnu/asm"

RENAMED = {"newstat": "stat", "newfstat": "fstat", "newlstat": "lstat", "newuname": "uname",
           "sendfile64": "sendfile", "umount": "umount2"}  # fmt: skip
"""Functions of the kernel that have another name than their call has."""


class Source(NamedTuple):
    """Where the names of a table are: in these headers, those that the pattern fits whole."""

    headers: tuple[str, ...]
    pattern: str


def _linux(header: str, pattern: str) -> Source:
    return Source((f"linux/{header}.h",), pattern)


def _generic(header: str, pattern: str) -> Source:
    return Source((f"asm-generic/{header}.h",), pattern)


FLAGS = "asm-generic/fcntl.h"

TERMIOS = ("asm-generic/termbits-common.h", "asm-generic/termbits.h")
MMAN = ("asm-generic/mman-common.h", "asm-generic/mman.h", "linux/mman.h", f"{ARCH}/mman.h")
# fmt: off
TABLES: dict[str, Source] = {
    "access": Source(("unistd.h",), r"[RWXF]_OK"),
    "address_family": Source((f"{GLIBC}/socket.h",), r"AF_(?!MAX|LOCAL|FILE|ROUTE)\w+"),
    "arch_prctl": Source((f"{ARCH}/prctl.h",), r"ARCH_[SGRCMF]\w+"),
    "at": _linux("fcntl", r"AT_(SYMLINK_\w+|EACCESS|NO_AUTOMOUNT|EMPTY_PATH|RECURSIVE)"),
    "at_remove": _linux("fcntl", r"AT_REMOVEDIR"),
    "at_statx": _linux(
        "fcntl",
        r"AT_(SYMLINK_\w+|NO_AUTOMOUNT|EMPTY_PATH|STATX_FORCE_SYNC|STATX_DONT_SYNC)",
    ),
    "arphrd": _linux("if_arp", r"ARPHRD_\w+"),
    "bpf_map_flags": _linux(
        "bpf",
        r"BPF_F_(NO_PREALLOC|NO_COMMON_LRU|NUMA_NODE|RDONLY(_PROG)?|WRONLY(_PROG)?|STACK_BUILD_ID"
        r"|ZERO_SEED|CLONE|MMAPABLE|PRESERVE_ELEMS|INNER_MAP|LINK|PATH_FD|VTYPE_BTF_OBJ_FD)",
    ),
    "bpf_prog_flags": _linux(
        "bpf",
        r"BPF_F_(STRICT_ALIGNMENT|ANY_ALIGNMENT|TEST_RND_HI32|TEST_STATE_FREQ|SLEEPABLE"
        r"|XDP_HAS_FRAGS|XDP_DEV_BOUND_ONLY)",
    ),
    "bpf_update": _linux("bpf", r"BPF_(ANY|NOEXIST|EXIST|F_LOCK)"),
    "capability": _linux("capability", r"CAP_(?!LAST|AUDIT_CONTROL$|TO)\w+|CAP_AUDIT_CONTROL"),
    "clock": _linux("time", r"CLOCK_(?!.*CLOCKS)[A-Z_]+"),
    "clone": _linux("sched", r"CLONE_(?!ARGS)\w+"),
    "close_range": _linux("close_range", r"CLOSE_RANGE_\w+"),
    "dn": _linux("fcntl", r"DN_\w+"),
    "efd": Source((f"{GLIBC}/eventfd.h", "linux/eventpoll.h"), r"EFD_\w+"),
    "epoll_create": Source((FLAGS, "linux/eventpoll.h"), r"EPOLL_CLOEXEC"),
    "epoll_ctl": _linux("eventpoll", r"EPOLL_CTL_\w+"),
    "epoll_events": _linux("eventpoll", r"EPOLL(?!_)[A-Z]+"),
    "fallocate": _linux("falloc", r"FALLOC_FL_\w+"),
    "fadvise": _linux("fadvise", r"POSIX_FADV_\w+"),
    "fcntl": Source(
        ("asm-generic/fcntl.h", "linux/fcntl.h"),
        r"F_(?!RDLCK|WRLCK|UNLCK|EXLCK|SHLCK|SEAL_|OWNER_)[A-Z]\w+",
    ),
    "flock_type": _generic("fcntl", r"F_(RDLCK|WRLCK|UNLCK)"),
    "seals": _linux("fcntl", r"F_SEAL_\w+"),
    "fd_flags": _generic("fcntl", r"FD_CLOEXEC"),
    "flock": _generic("fcntl", r"LOCK_[A-Z]+"),
    "fsopen": _linux("mount", r"FSOPEN_\w+"),
    "fsmount": _linux("mount", r"FSMOUNT_\w+"),
    "futex": _linux("futex", r"FUTEX_(?!\w*PRIVATE|CLOCK|CMD|WAITERS|OWNER|TID|BITSET|OP)\w+"),
    "futex_flags": _linux("futex", r"FUTEX_(PRIVATE_FLAG|CLOCK_REALTIME)"),
    "getrandom": _linux("random", r"GRND_\w+"),
    "inotify": _linux("inotify", r"IN_(?!ALL_EVENTS|CLOSE$|MOVE$|CLOEXEC|NONBLOCK)\w+"),
    "inotify_init": Source((FLAGS, "linux/inotify.h"), r"IN_(CLOEXEC|NONBLOCK)"),
    "ioctl": Source(
        (
            "asm-generic/ioctls.h",
            "linux/fs.h",
            "linux/perf_event.h",
            "linux/sockios.h",
            "linux/random.h",
            "linux/if_tun.h",
            "linux/nsfs.h",
            "linux/loop.h",
            "linux/kd.h",
            "linux/vt.h",
            "linux/userfaultfd.h",
            "linux/cdrom.h",
        ),
        r"(TC[GSFX]|TIOC(?!PKT_|M_|SER_)|FIO|FIC|FIBMAP|FIGETBSZ|FITRIM|FIFREEZE|FITHAW|FIDEDUP"
        r"|FS_IOC_|BLK|PERF_EVENT_IOC_|SIOC|RND[A-Z]|TUN[SGA](?!O)|NS_GET|LOOP_(?!\w+ABLE_)(SET|CLR|GET|CH|CTL|CON)"
        r"|KD[GS]K?[A-Z]{2}|VT_(?!AUTO)[A-Z]+$|UFFDIO_(?=[A-Z]+$)|CDROM[A-Z])\w*",
    ),
    "fs_flags": _linux("fs", r"FS_(?!RESERVED|FL_|.*_FL_)\w+_FL"),
    "iff": _linux("if", r"IFF_(?!VOLATILE)\w+"),
    "tc_baud": Source(TERMIOS, r"B\d+"),
    "tc_iflag": Source(
        TERMIOS,
        r"(IGNBRK|BRKINT|IGNPAR|PARMRK|INPCK|ISTRIP|INLCR|IGNCR|ICRNL|IUCLC|IXON|IXANY|IXOFF"
        r"|IMAXBEL|IUTF8)",
    ),
    "tc_oflag": Source(TERMIOS, r"(OPOST|OLCUC|ONLCR|OCRNL|ONOCR|ONLRET|OFILL|OFDEL)"),
    "tc_cflag": Source(TERMIOS, r"(CSTOPB|CREAD|PARENB|PARODD|HUPCL|CLOCAL|CMSPAR|CRTSCTS)"),
    "tc_lflag": Source(
        TERMIOS,
        r"(ISIG|ICANON|XCASE|ECHO|ECHOE|ECHOK|ECHONL|NOFLSH|TOSTOP|ECHOCTL|ECHOPRT|ECHOKE"
        r"|FLUSHO|PENDIN|IEXTEN|EXTPROC)",
    ),
    "itimer_abs": _linux("time", r"TIMER_ABSTIME"),
    "ioprio_class": _linux("ioprio", r"IOPRIO_CLASS_\w+"),
    "ioprio_who": _linux("ioprio", r"IOPRIO_WHO_\w+"),
    "ipc": _linux("ipc", r"IPC_(CREAT|EXCL|NOWAIT)"),
    "ip_protocol": Source(("linux/in.h", "netinet/in.h"), r"IPPROTO_(?!MAX)\w+"),
    "ip_option": _linux("in", r"IP_(?!PMTUDISC|DEFAULT|MAX)[A-Z]\w+"),
    "ipv6_option": _linux("in6", r"IPV6_(?!PMTUDISC|PREFER|TLV|PRIORITY|FL|SRCRT)[A-Z]\w+"),
    "itimer": _linux("time", r"ITIMER_\w+"),
    "keyctl": _linux("keyctl", r"KEYCTL_(?!CAPS|SUPPORTS|PKEY)\w+"),
    "landlock_rule": _linux("landlock", r"LANDLOCK_RULE_\w+"),
    "madvise": Source(MMAN, r"MADV_\w+"),
    "map": Source(MMAN, r"MAP_(?!TYPE|FILE|HUGE_|SHARED_VALIDATE|SHARED$|PRIVATE$)\w+"),
    "map_type": Source(MMAN, r"MAP_(SHARED|PRIVATE|SHARED_VALIDATE)"),
    "membarrier": _linux("membarrier", r"MEMBARRIER_CMD_(?!FLAG)\w+"),
    "memfd": _linux("memfd", r"MFD_(?!HUGE_)\w+"),
    "mempolicy": _linux(
        "mempolicy",
        r"MPOL_(DEFAULT|PREFERRED|BIND|INTERLEAVE|LOCAL|PREFERRED_MANY)",
    ),
    "mempolicy_flags": _linux(
        "mempolicy",
        r"MPOL_F_(STATIC_NODES|RELATIVE_NODES|NUMA_BALANCING)",
    ),
    "mempolicy_get": _linux("mempolicy", r"MPOL_F_(NODE|ADDR|MEMS_ALLOWED)"),
    "mempolicy_move": _linux("mempolicy", r"MPOL_MF_(STRICT|MOVE|MOVE_ALL|LAZY)"),
    "mlock2": Source(MMAN, r"MLOCK_ONFAULT"),
    "mlockall": Source(MMAN, r"MCL_\w+"),
    "mount": _linux("mount", r"MS_(?!RMT|MGC)\w+"),
    "move_mount": _linux("mount", r"MOVE_MOUNT_(?!_)\w+"),
    "mremap": Source(MMAN, r"MREMAP_\w+"),
    "msg": Source((f"{GLIBC}/socket.h",), r"MSG_\w+"),
    "msync": Source(MMAN, r"MS_(ASYNC|INVALIDATE|SYNC)"),
    "open": _generic("fcntl", r"O_(?!ACCMODE|RDONLY|WRONLY|RDWR|NDELAY)[A-Z]\w+"),
    "netlink": _linux(
        "netlink",
        r"NETLINK_(ROUTE|USERSOCK|SOCK_DIAG|NFLOG|XFRM|SELINUX|ISCSI|AUDIT|FIB_LOOKUP"
        r"|CONNECTOR|NETFILTER|GENERIC|CRYPTO|KOBJECT_UEVENT)",
    ),
    "open_tree": Source((FLAGS, "linux/mount.h"), r"OPEN_TREE_\w+"),
    "perf_attr_size": _linux("perf_event", r"PERF_ATTR_SIZE_VER\d+"),
    "perf_open": Source((FLAGS, "linux/perf_event.h"), r"PERF_FLAG_\w+"),
    "personality": _linux("personality", r"(PER_(LINUX|LINUX32))"),
    "personality_flags": _linux(
        "personality",
        r"(UNAME26|FDPIC_FUNCPTRS|MMAP_PAGE_ZERO|READ_IMPLIES_EXEC|SHORT_INODE|WHOLE_SECONDS"
        r"|STICKY_TIMEOUTS|ADDR_(NO_RANDOMIZE|COMPAT_LAYOUT|LIMIT_32BIT|LIMIT_3GB))",
    ),
    "pkey": Source(MMAN, r"PKEY_DISABLE_(ACCESS|WRITE)"),
    "poll": _generic("poll", r"POLL(?!_)[A-Z]+"),
    "prctl": _linux(
        "prctl",
        r"PR_(SET|GET|CAPBSET|MCE|TASK|SVE|PAC|CAP|SCHED|THP|RISCV)_?(?!MM_|CORE_S|CORE_G"
        r"|CORE_M|AMBIENT_)\w+",
    ),
    "priority": Source((f"{GLIBC}/resource.h",), r"PRIO_(PROCESS|PGRP|USER)"),
    "prot": Source(MMAN, r"PROT_(?!NONE)\w+"),
    "ptrace": _linux(
        "ptrace",
        r"PTRACE_(?!O_|EVENT_|EVENTMSG|SYSCALL_INFO|PEEKSIGINFO_|RSEQ_|MODE)\w+",
    ),
    "rename": _linux("fs", r"RENAME_\w+"),
    "resolve": _linux("openat2", r"RESOLVE_\w+"),
    "rlimit": _generic("resource", r"RLIMIT_\w+"),
    "rseq": _linux("rseq", r"RSEQ_FLAG_\w+"),
    "rusage": _linux("resource", r"RUSAGE_\w+"),
    "rwf": _linux("fs", r"RWF_(?!SUPP)\w+"),
    "sa": Source((f"{ARCH}/signal.h", "asm-generic/signal-defs.h"), r"SA_(?!ONESHOT|NOMASK)\w+"),
    "sched": _linux("sched", r"SCHED_(NORMAL|FIFO|RR|BATCH|IDLE|DEADLINE)"),
    "seccomp": _linux("seccomp", r"SECCOMP_(SET|GET)\w+"),
    "sfd": Source((f"{GLIBC}/signalfd.h",), r"SFD_\w+"),
    "shm": _linux("shm", r"SHM_(RDONLY|RND|REMAP|EXEC)"),
    "shutdown": Source(("x86_64-linux-gnu/sys/socket.h",), r"SHUT_\w+"),
    "si_code": _generic("siginfo", r"SI_(?!LOAD|STORE|PAD|MAX)\w+"),
    "cld_code": _generic("siginfo", r"CLD_\w+"),
    "segv_code": _generic("siginfo", r"SEGV_\w+"),
    "bus_code": _generic("siginfo", r"BUS_\w+"),
    "fpe_code": _generic("siginfo", r"FPE_\w+"),
    "ill_code": _generic("siginfo", r"ILL_\w+"),
    "poll_code": _generic("siginfo", r"POLL_\w+"),
    "sigsys_code": _generic("siginfo", r"SYS_\w+"),
    "trap_code": _generic("siginfo", r"TRAP_\w+"),
    "sigmask": _generic("signal-defs", r"SIG_(BLOCK|UNBLOCK|SETMASK)"),
    "signal": Source((f"{ARCH}/signal.h",), r"SIG(?!IOT|POLL|UNUSED|RT|_|STKSZ)[A-Z0-9]+"),
    "sock_option": Source(("asm-generic/socket.h",), r"SO_(?!.*_(OLD|NEW)$)[A-Z]\w+"),
    "sock_type": Source((f"{GLIBC}/socket_type.h",), r"SOCK_(?!CLOEXEC|NONBLOCK)\w+"),
    "sock_flags": Source((f"{GLIBC}/socket_type.h",), r"SOCK_(CLOEXEC|NONBLOCK)"),
    "sol": Source(
        (
            "asm-generic/socket.h",
            f"{GLIBC}/socket.h",
            f"{GLIBC}/in.h",
            "netinet/tcp.h",
            "netinet/udp.h",
        ),
        r"SOL_\w+",
    ),
    "splice": Source((f"{GLIBC}/fcntl-linux.h",), r"SPLICE_F_\w+"),
    "stack_flags": _linux("signal", r"SS_(ONSTACK|DISABLE|AUTODISARM)"),
    "statx_mask": _linux("stat", r"STATX_(?!_|ATTR|ALL)\w+"),
    "sync_range": _linux("fs", r"SYNC_FILE_RANGE_(?!WRITE_AND)\w+"),
    "tcp_option": _linux(
        "tcp",
        r"TCP_(?!\w*QUEUES?(_NR)?$|REPAIR_O|BPF|MD5SIG_|ESTAB|SYN|FIN|TIME|CLOSE|LAST"
        r"|LISTEN|NEW|RTO|CA|MSS|NLA|S_)[A-Z]\w+",
    ),
    "tfd": Source((FLAGS, "linux/timerfd.h"), r"TFD_(CLOEXEC|NONBLOCK)"),
    "tfd_settime": _linux("timerfd", r"TFD_TIMER_\w+"),
    "umount": Source(
        ("x86_64-linux-gnu/sys/mount.h",),
        r"(MNT_(FORCE|DETACH|EXPIRE)|UMOUNT_NOFOLLOW)",
    ),
    "wait": _linux("wait", r"(W(?!CLONE|ALL|NOTHREAD)[A-Z]+|__W\w+)"),
    "waitid": _linux("wait", r"P_(ALL|PID|PGID|PIDFD)"),
    "whence": _linux("fs", r"SEEK_(?!MAX)\w+"),
    "xattr": _linux("xattr", r"XATTR_(CREATE|REPLACE)"),
}
# fmt: on

DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", re.MULTILINE)
ENUM = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
CAST = re.compile(r"\(\s*(?:__force\s+)?(?:int|__u64|__poll_t|__kernel_\w+_t)\s*\)")
SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
OCTAL = re.compile(r"(?<![\w.])0([0-7]+)\b")
IOCTL = re.compile(r"_IO([RW]*)\s*\(\s*('.'|\w+)\s*,\s*(\w+)\s*(?:,\s*([\w ]+\*?)\s*)?\)")
SIZES = {"int": 4, "unsigned int": 4, "long": 8, "size_t": 8, "__u64": 8, "__u32": 4, "char": 1,
         "unsigned long": 8, "char *": 8, "u64": 8, "__u64 *": 8, "__u32 *": 8,
         "struct termios2": 44, "struct serial_rs485": 32, "struct serial_iso7816": 40,
         "struct fiemap": 32, "struct file_clone_range": 32, "struct file_dedupe_range": 24,
         "struct fstrim_range": 24, "struct fsxattr": 28, "struct blk_user_trace_setup": 72,
         "struct sock_fprog": 16, "struct uffdio_api": 24, "struct uffdio_continue": 32,
         "struct uffdio_copy": 40, "struct uffdio_range": 16, "struct uffdio_register": 32,
         "struct uffdio_writeprotect": 24, "struct uffdio_zeropage": 32}  # fmt: skip
"""Of what ioctls point to, in bytes on x86-64; those of struct where strace shows their names."""


class Constants:
    """What a header defines, by name, once it is asked for."""

    def __init__(self, headers: tuple[str, ...]) -> None:
        self._texts: dict[str, str] = {}
        self._active: set[str] = set()
        for header in headers:
            path = INCLUDE / header
            if path.exists():
                self._read(COMMENT.sub(" ", path.read_text().replace("\\\n", " ")))

    def _read(self, text: str) -> None:
        for body in ENUM.findall(text):
            before = "-1"
            for entry in re.sub(r"^\s*#.*$", "", body, flags=re.MULTILINE).split(","):
                name, _, value = (part.strip() for part in entry.partition("="))
                if re.fullmatch(r"\w+", name):
                    before = value or f"({before}) + 1"
                    self._texts.setdefault(name, before)
        for name, value in DEFINE.findall(text):
            if value.strip() != name:
                self._texts[name] = value.strip()

    def matching(self, pattern: str) -> Iterator[tuple[str, int]]:
        """Names that fit, with their values, in the order of the header."""
        for name in self._texts:
            if re.fullmatch(pattern, name) and (value := self._value(name)) is not None:
                yield name, value

    def _value(self, name: str) -> int | None:
        if name not in self._texts or name in self._active:
            return None
        self._active.add(name)
        try:
            return self._evaluate(self._texts[name])
        finally:
            self._active.discard(name)

    def _evaluate(self, text: str) -> int | None:
        text = IOCTL.sub(_ioctl, SUFFIX.sub(r"\1", text))
        text = CAST.sub("", text)
        text = re.sub(r"'(.)'", lambda match: str(ord(match[1])), OCTAL.sub(r"0o\1", text))
        known = {word: self._value(word) for word in re.findall(r"\b[A-Za-z_]\w*", text)}
        if None in known.values() or not re.fullmatch(r"[\w\s()|&~+<>*-]+", text):
            return None
        try:
            value = eval(text, {"__builtins__": {}}, known)  # noqa: S307 - numbers and operators
        except (SyntaxError, TypeError):
            return None
        return value if isinstance(value, int) else None


def _ioctl(match: re.Match[str]) -> str:
    """The number of `_IOR('f', 1, long)`; of a struct, which would need its size, none."""
    direction, kind, number, type_name = match.groups()
    if type_name and type_name.strip() not in SIZES:
        return "unknown"
    size = SIZES[type_name.strip()] if type_name else 0
    bits = 2 * ("R" in direction) + ("W" in direction)
    return f"({bits} << 30 | {size} << 16 | ({kind}) << 8 | {number})"


def constants() -> dict[str, list[tuple[str, int]]]:
    """Every table, by value; of names with one value, the first in the headers."""
    tables = {}
    for table, (headers, pattern) in TABLES.items():
        entries: dict[int, str] = {}
        for name, value in Constants(headers).matching(pattern):
            entries.setdefault(value, name)
        tables[table] = [(name, value) for value, name in sorted(entries.items())]
    return tables


def signatures() -> dict[str, str]:
    """The parameters of each call, as the kernel declares them."""
    calls = {}
    for path in EVENTS.glob("sys_enter_*/format"):
        fields = re.findall(r"field:([^;]+);", path.read_text())
        parameters = [re.sub(r"\s+", " ", field) for field in fields[5:]]
        name = path.parent.name.removeprefix("sys_enter_")
        calls[RENAMED.get(name, name)] = ",".join(parameters).replace("* ", "*")
    return dict(sorted(calls.items()))


def write() -> None:
    """Write both files."""
    lines = (f"{name} {parameters}".rstrip() for name, parameters in signatures().items())
    SIGNATURES.write_text("".join(f"{line}\n" for line in lines))
    tables = (
        f"[{table}]\n" + "".join(f"{name} {value}\n" for name, value in rows)
        for table, rows in constants().items()
    )
    CONSTANTS.write_text("\n".join(tables))


def disagreements() -> Iterator[str]:
    """Where this machine says something else than the checked-in tables."""
    from purebpf.abi.tables import read_constants, read_table

    ours = dict(line.partition(" ")[::2] for line in read_table("signatures").splitlines())
    for name, parameters in signatures().items():
        if len(ours.get(name, parameters).split(",")) != len(parameters.split(",")):
            yield f"{name}({parameters}) here, {name}({ours[name]}) in the table"
    for table, rows in constants().items():
        values = read_constants(table)
        for name, value in rows:
            if values.get(name, value) != value:
                yield f"{table}: {name} is {value} here, {values[name]} in the table"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        wrong = list(disagreements())
        print(*wrong, sep="\n") if wrong else print("trace tables agree")
        return 1 if wrong else 0
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
