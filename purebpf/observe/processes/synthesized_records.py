"""Processes and mappings from before the run, as perf records.

The kernel reports a mapping, a name or a thread when it begins. A file of samples also needs the
ones that had begun earlier; perf(1) makes records of them, and purebpf does the same. Their time is
0: they hold from the start. Read /proc after the events are open, so that nothing falls between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from purebpf.abi.perf import perf_event_type as kind
from purebpf.errors import KernelError
from purebpf.observe.symbols.process_maps import read_maps
from purebpf.symbols.proc_maps import mapped_file
from purebpf.syscall import proc
from purebpf.wire.perf_data import KERNEL
from purebpf.wire.perf_encode import HOST_KERNEL, MISC_KERNEL
from purebpf.wire.perf_records import Comm, Fork, Mmap, Mmap2, Other

__all__ = ["cgroups", "kallsyms", "kernel_mappings", "processes", "programs"]

_MAPPING = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) (r|-)(w|-)(x|-)(p|s) "
    r"([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$",
    re.MULTILINE,
)
_PROGRAM = re.compile(rb"^([0-9a-f]+) . (\S+)\t\[bpf\]$", re.MULTILINE)
_MODULE = re.compile(r"^(\S+) (\d+) .* 0x([0-9a-f]+)", re.MULTILINE)
_LONGEST_PROGRAM = 1 << 16
_KSYMBOL_BPF = 1  # PERF_RECORD_KSYMBOL_TYPE_BPF
_SHARED, _PRIVATE = 1, 2  # mmap(2)


def processes(pids: Iterable[int], *, data: bool = False) -> Iterator[Comm | Fork | Mmap2]:
    """Names, threads and executable mappings of processes; with `data`, all their mappings.

    A process that ends during the read, or that cannot be read, is skipped.
    """
    for pid in pids:
        try:
            comm, maps = proc.comm(pid), read_maps(pid)
        except KernelError:
            continue
        if comm is None or maps is None:
            continue
        yield Comm(pid, pid, comm, False)
        yield from _mappings(pid, maps, data=data)
        for tid in proc.threads(pid):
            name = proc.comm(f"{pid}/task/{tid}") if tid != pid else None
            if name is not None:
                yield Fork(pid, pid, tid, pid)
                yield Comm(pid, tid, name, False)


def _mappings(pid: int, maps: str, *, data: bool) -> Iterator[Mmap2]:
    for start, end, r, w, x, shared, offset, major, minor, inode, path in _MAPPING.findall(maps):
        if x == "-" and not (data and r == "r"):
            continue
        at = int(start, 16)
        prot = (r == "r") | (w == "w") << 1 | (x == "x") << 2
        yield Mmap2(
            *(pid, pid, at, int(end, 16) - at, int(offset, 16), mapped_file(path).path or "//anon"),
            *(int(major, 16), int(minor, 16), int(inode), b""),
            *(prot, _SHARED if shared == "s" else _PRIVATE),
        )


def kallsyms() -> bytes:
    """/proc/kallsyms; empty where it cannot be read: there are still the processes."""
    try:
        return proc.kallsyms()
    except KernelError:
        return b""


def kernel_mappings(kallsyms: bytes) -> Iterator[Mmap]:
    """The kernel and its modules, given the text of /proc/kallsyms; nothing if it hides addresses.

    The kernel's mapping begins at `_text`, as its name and offset say: with that, a reader can
    compute how much the addresses of this boot differ from the kernel file's.
    """
    text, end = _address(kallsyms, b"_text"), _address(kallsyms, b"_etext")
    start = text or _address(kallsyms, b"_stext")
    if not start or not end:
        return
    name = "_text" if text else "_stext"
    yield Mmap(HOST_KERNEL, 0, start, end - start, start, KERNEL + name, False)
    try:
        with open(f"{proc.PROC}/modules", encoding="utf-8") as file:
            modules = file.read()
    except OSError:  # a kernel without modules has no such file
        return
    paths = _module_paths()
    for module, size, address in _MODULE.findall(modules):
        if int(address, 16):
            path = paths.get(module, f"[{module}]")
            yield Mmap(HOST_KERNEL, 0, int(address, 16), int(size), 0, path, False)


def _address(kallsyms: bytes, name: bytes) -> int:
    """Return the address of one of the kernel's own symbols; 0: hidden, or there is none.

    bytes.find() takes 1 ms for all of it, a pattern that begins at each line 60.
    """
    at = kallsyms.find(b" " + name + b"\n")
    line = kallsyms.rfind(b"\n", 0, max(at, 0)) + 1
    return 0 if at < 0 else int(kallsyms[line:at].partition(b" ")[0], 16)


def _module_paths() -> dict[str, str]:
    """Return the paths of the modules' files, by the names that the kernel gives them."""
    directory = f"/lib/modules/{os.uname().release}"
    try:
        with open(f"{directory}/modules.dep", encoding="utf-8") as file:
            files = [line.partition(":")[0] for line in file]
    except OSError:
        return {}
    paths = {}
    for path in files:
        name = path.rpartition("/")[2].partition(".ko")[0].replace("-", "_")
        paths[name] = f"{directory}/{path}"
    return paths


def programs(kallsyms: bytes) -> Iterator[Other]:
    """The BPF programs that are loaded, as KSYMBOL records.

    /proc/kallsyms does not have sizes: a program ends where the next one begins.
    """
    # the kernel's own symbols come first and have no tab (s_show() in kernel/kallsyms.c)
    others = max(kallsyms.rfind(b"\n", 0, max(kallsyms.find(b"\t"), 0)), 0)
    jited = sorted((int(address, 16), name) for address, name in _PROGRAM.findall(kallsyms, others))
    ends = [*jited[1:], (jited[-1][0] + 1, b"")] if jited else []
    for (address, name), (following, _) in zip(jited, ends, strict=True):
        if not address:
            continue  # hidden
        size = min(following - address, _LONGEST_PROGRAM)
        body = address.to_bytes(8, "little") + size.to_bytes(4, "little")
        body += _KSYMBOL_BPF.to_bytes(2, "little") + bytes(2) + _name(name)
        yield Other(kind.PERF_RECORD_KSYMBOL, MISC_KERNEL, body)


def cgroups(root: str) -> Iterator[Other]:
    """The cgroups that exist, by id, as CGROUP records; `root` is where cgroup2 is mounted."""
    for directory, _, _ in os.walk(root):
        try:
            number = os.stat(directory).st_ino
        except FileNotFoundError:
            continue
        path = directory.removeprefix(root) or "/"
        body = number.to_bytes(8, "little") + _name(os.fsencode(path))
        yield Other(kind.PERF_RECORD_CGROUP, 0, body)


def _name(text: bytes) -> bytes:
    return text + bytes(8 - len(text) % 8)
