"""The answers for an address: a `Frame` with a name, or an `Unknown` with the reason.

Three kinds of integer that are easily confused have three types:

- `Address`: where code runs, in a process or in the kernel;
- `FileOffset`: bytes from the start of a file;
- `VirtualOffset`: where an ELF file says its code lives (the `st_value` of its symbols).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NewType

from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Address",
    "FileOffset",
    "Frame",
    "Reason",
    "Unknown",
    "VirtualOffset",
    "is_of_tracepoint",
    "is_unnamed_function",
    "spell_kernel_frame",
    "unnamed_function",
    "without_stray_tail",
]

Address = NewType("Address", int)
FileOffset = NewType("FileOffset", int)
VirtualOffset = NewType("VirtualOffset", int)


class Reason(StrEnum):
    """Why an address has no name. Each value reads as the end of "unknown: "."""

    EXITED = "the process exited before purebpf read its mappings"
    FORBIDDEN = "this user cannot read the mappings of the process"
    HIDDEN = (
        "the process is not in /proc, which is mounted with hidepid or for another PID namespace"
    )
    UNMAPPED = "the address is not in an executable mapping"
    GARBAGE = "not a code address: the stack was unwound without frame pointers"
    ANONYMOUS = "anonymous memory: generated code without /tmp/perf-PID.map"
    NOT_IN_PERF_MAP = "generated code that its /tmp/perf-PID.map does not list"
    NOT_IN_JITDUMP = "generated code that its jit-PID.dump does not list"
    UNTRUSTED_PERF_MAP = "generated code; its /tmp/perf-PID.map belongs to another user"
    STALE_PERF_MAP = "generated code; its /tmp/perf-PID.map is older than the process"
    STRIPPED = "the file is stripped: only exported symbols remain"
    NO_FUNCTION = "the address is between two functions of its file"
    NOT_FOUND = "the file was not found"
    UNREADABLE = "the file cannot be read"
    REPLACED = "the file was deleted or replaced after it was mapped"
    CONTESTED = "several files were loaded at this address, one after the other"
    NOT_ELF = "the file is not a readable ELF file"
    OVER_BUDGET = "not looked up: its file, process or user has used up its share of the lookups"
    INTERRUPTED = "not looked up: an interrupt ended the lookups"
    PYTHON_UNNAMED = "a Python function: its name found no room, or could not be read"
    JAVA_UNNAMED = "a Java method: it was unloaded before its name was read"
    PYTHON_CUT = "Python frames that could not be read: their memory was not there"
    KERNEL_HIDDEN = (
        "kernel addresses are hidden: CAP_SYSLOG is missing, or kernel.kptr_restrict is 2"
    )
    KERNEL_UNREADABLE = "/proc/kallsyms cannot be read"
    OTHER_KERNEL = "recorded on another kernel than the one that runs now"
    UNPROVEN_KERNEL = (
        "perhaps recorded on another kernel: the file lacks the kernel's build id (perf record "
        "without -B, in a pipe with --buildid-mmap)"
    )
    UNPLACED_KERNEL = "the file does not say where its kernel was loaded (KASLR)"
    NOT_RECORDED = (
        "code that was loaded into the kernel, and the file does not say which build of it"
    )
    OTHER_MACHINE = "perhaps recorded on another machine, and without the build id of its file"
    NO_KERNEL_FUNCTION = "the address is not in a function of /proc/kallsyms"


class Frame(NamedTuple):
    """A named address.

    `name` is demangled; `offset` is `address` minus the function's start, in bytes. `module` is the
    file's path as its process sees it, "kernel", the name of a kernel module, or "[bpf]", "[vdso]",
    "[jit]". `kind` is "kernel" or "user", "python" for a Python function (`module` is its source
    file), or "inlined" for a function that the compiler put into the code of its caller, the next
    frame (its `offset` is 0). `build_id` (hex) and `file_offset` find the place again in another
    copy of the file; they are "" and -1 where there is no file. `file` and `line` are the place in
    the source, "" and 0 without --lines. A function without a symbol is named by
    `unnamed_function`.
    """

    name: str
    offset: int
    module: str
    address: Address
    kind: str
    build_id: str = ""
    file_offset: FileOffset = FileOffset(-1)
    file: str = ""
    line: int = 0


class Unknown(NamedTuple):
    """An address without a name, and why.

    `module` is the file that is mapped there, or "". `detail` completes the reason: the name of an
    errno, or the fault of the file. `build_id` and `file_offset` as in `Frame`: another machine may
    know the name by them.
    """

    reason: Reason
    module: str
    address: Address
    kind: str
    detail: str = ""
    build_id: str = ""
    file_offset: FileOffset = FileOffset(-1)


def unnamed_function(module: str, start: VirtualOffset) -> str:
    """Return a name for a function without a symbol: `liblzma.so.5.4.1!0x1c340`.

    The number is where the file says that the function starts, as `objdump -d` prints it: the same
    in every process and on every machine that has this build of the file.
    """
    return f"{module.rpartition('/')[2]}!{start:#x}"


def is_unnamed_function(entry: Frame | Unknown) -> bool:
    """Return True for a function that has no name but its start."""
    if isinstance(entry, Unknown) or "!0x" not in entry.name:
        return False
    return entry.name.startswith(f"{entry.module.rpartition('/')[2]}!0x")


def without_stray_tail(stack: Sequence[Frame | Unknown]) -> tuple[Frame | Unknown, ...]:
    """The stack, leaf first, up to and including its first address that is not code.

    The kernel follows frame pointers; in code that uses this register for something else it reads
    arbitrary memory, up to 127 times. One such entry marks the fault; the entries behind it are
    random.
    """
    for depth, entry in enumerate(stack, 1):
        if isinstance(entry, Unknown) and entry.reason is Reason.GARBAGE:
            return tuple(stack[:depth])
    return tuple(stack)


_TRACEPOINT = ("__traceiter_", "bpf_trace_run", "__bpf_trace_", "trace_contention_")


def is_of_tracepoint(entry: Frame | Unknown) -> bool:
    """Return True if a kernel frame is between a tracepoint and the BPF program that took the
    stack.
    """
    return isinstance(entry, Frame) and (
        entry.module == "[bpf]" or entry.name.startswith(_TRACEPOINT)
    )


def spell_kernel_frame(entry: Frame | Unknown) -> str:
    """`mutex_lock`, `ext4_sync_file [ext4]`, or the address of a frame without a name."""
    if isinstance(entry, Unknown):
        return f"{entry.address:#x}"
    return entry.name if entry.module == "kernel" else f"{entry.name} [{entry.module}]"
