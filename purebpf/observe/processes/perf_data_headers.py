"""This machine as the features of a perf.data file: its hardware, its kernel, the command line."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from purebpf._version import __version__
from purebpf.errors import FormatError
from purebpf.files.regular_file import open_regular
from purebpf.loader.host import cpus
from purebpf.loader.host.debug_files import image_of
from purebpf.loader.host.kernel_build_id import kernel_build_id, read_build_id
from purebpf.observe.symbols.vdso import VDSO, vdso_build_id
from purebpf.symbols.proc_maps import mapped_file
from purebpf.syscall import pmu, proc, tracefs
from purebpf.wire.perf_data import KERNEL, Feature
from purebpf.wire.perf_data_features import (
    BuildId,
    pack_build_ids,
    pack_cpus,
    pack_numbers,
    pack_pmus,
    pack_string,
    pack_strings,
)
from purebpf.wire.perf_records import Mmap, Mmap2
from purebpf.wire.tracing_data import pack_tracing_data

__all__ = ["BuildIds", "features", "tracing_data"]


def features(command: Sequence[str]) -> dict[Feature, bytes]:
    """Return the features that do not depend on the run; `command` is the command line that made
    the file.
    """
    host = os.uname()
    cpuinfo = _read(f"{proc.PROC}/cpuinfo")
    memory = re.search(r"^MemTotal: *(\d+)", _read(f"{proc.PROC}/meminfo"), re.MULTILINE)
    contents = {
        Feature.HOSTNAME: pack_string(host.nodename),
        Feature.OSRELEASE: pack_string(host.release),
        Feature.VERSION: pack_string(f"purebpf {__version__}"),
        Feature.ARCH: pack_string(host.machine),
        Feature.NRCPUS: pack_cpus(len(cpus.possible()), len(cpus.online())),
        Feature.CMDLINE: pack_strings(command),
        Feature.PMU_MAPPINGS: pack_pmus(_pmus()),
    }
    if memory is not None:
        contents[Feature.TOTAL_MEM] = pack_numbers(int(memory[1]))
    if (model := _cpu(cpuinfo, "model name")) is not None:
        contents[Feature.CPUDESC] = pack_string(model)
    cpuid = [_cpu(cpuinfo, name) for name in ("vendor_id", "cpu family", "model", "stepping")]
    if None not in cpuid:
        contents[Feature.CPUID] = pack_string(",".join(map(str, cpuid)))
    return contents


def tracing_data(tracepoints: Iterable[str]) -> bytes:
    """The feature TRACING_DATA for some tracepoints, `category:name` each.

    Raises:
        KernelError, NotSupportedError: tracefs may not be read.
    """
    formats: dict[str, list[bytes]] = {}
    for tracepoint in dict.fromkeys(tracepoints):
        category, _, name = tracepoint.partition(":")
        text = tracefs.tracepoint_format(category, name)
        formats.setdefault(category, []).append(text.encode())
    return pack_tracing_data(
        tracefs.read("events/header_page").encode(),
        tracefs.read("events/header_event").encode(),
        formats,
        page_size=mmap.PAGESIZE,
    )


def _cpu(cpuinfo: str, name: str) -> str | None:
    value = re.search(rf"^{name}\s*: (.*)$", cpuinfo, re.MULTILINE)
    return value[1] if value else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _pmus() -> Iterator[tuple[int, str]]:
    for name in pmu.names():
        number = pmu.attribute(name, "type")
        if number is not None and number.isdecimal():
            yield int(number), name


class BuildIds:
    """The build ids of all files that were mapped while something was recorded.

    perf(1) reads every sample once more to leave out files without any; this does not, as
    `perf record --buildid-all`.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[str, int], int] = {}  # path and inode: who mapped it first

    def add(self, mapping: Mmap | Mmap2) -> None:
        """Note a mapping's file."""
        inode = mapping.ino if isinstance(mapping, Mmap2) else 0
        self._files.setdefault((mapping.filename, inode), mapping.pid)

    def pack(self) -> bytes:
        """The feature BUILD_ID: the kernel and every file that still can be read."""
        return pack_build_ids(self._find_build_ids())

    def _find_build_ids(self) -> Iterable[BuildId]:
        for (name, inode), pid in self._files.items():
            if name.startswith(KERNEL):
                build_id, name = kernel_build_id(), KERNEL
            elif "/lib/modules/" in name or (name.startswith("[") and name != VDSO and not inode):
                build_id = read_build_id(_module_notes(name))
            elif name == VDSO:
                build_id = bytes.fromhex(vdso_build_id())
            else:
                build_id = _of_file(name, inode, pid)
            if build_id:
                yield BuildId(name, build_id, name == KERNEL or "/lib/modules/" in name)


def _module_notes(name: str) -> str:
    module = name.rpartition("/")[2].partition(".ko")[0].strip("[]").replace("-", "_")
    return f"/sys/module/{module}/notes/.note.gnu.build-id"


def _of_file(name: str, inode: int, pid: int) -> bytes:
    """Return the build id of the mapped file, if it is still there, in the mount namespace of
    its process.
    """
    file = mapped_file(name)
    if file.is_anonymous or file.is_special or file.deleted:
        return b""
    for path in (f"{proc.PROC}/{proc.with_memory(pid)}/root{file.path}", file.path):
        try:
            fd = open_regular(path)
        except OSError:
            continue
        try:
            if inode and os.fstat(fd).st_ino != inode:
                continue
            return bytes.fromhex(image_of(fd, path).build_id)
        except (OSError, FormatError):
            continue
        finally:
            os.close(fd)
    return b""
