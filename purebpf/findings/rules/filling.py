"""File systems that fill up: files in memory, and disks that are soon full. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from purebpf.findings.evidence import Evidence
from purebpf.findings.facts import FileSystem
from purebpf.findings.finding import Finding
from purebpf.findings.words import call_site

__all__ = ["filling_file_systems"]

_LOOKS, _IN_MEMORY, _ON_DISK = 3, 0.5e6, 1e6
"""Readings that have to grow each, and bytes a second that are worth a line."""
_SOON_S = 600.0
"""A disk that is full within this time is told."""
_COST, _MOST = 0.3, 1.0
_WRITES = frozenset({"write", "pwrite64", "writev", "sendfile", "copy_file_range"})
_REMOVES, _PARTS = ("unlink", "unlinkat"), 2
"""Calls that remove a file; who removes every second one that it opens keeps its files small."""
_OPENS = ("openat", "open", "creat", "openat2")


def filling_file_systems(evidence: Evidence) -> Iterator[Finding]:
    """Files use more and more of a file system, at every look.

    Silent about disks with room for a while: programs write files.
    """
    for one in evidence.facts.file_systems:
        rate = (one.used[-1] - one.used[0]) / evidence.elapsed_s
        in_memory = one.kind == "tmpfs"
        if len(one.used) < _LOOKS or rate < (_IN_MEMORY if in_memory else _ON_DISK):
            continue
        if any(later <= earlier for earlier, later in pairwise(one.used)):
            continue
        left_s = one.free / rate
        if not in_memory and left_s > _SOON_S:
            continue
        pids, folder = _writers(evidence, one)
        sites = (call_site(evidence, pids, word) for word in ("file_write", "write", "open"))
        function = next(filter(None, sites), "")
        full = f"; it is full in {left_s / 60:.0f} minutes" if left_s < _SOON_S else ""
        yield Finding(
            *("filling", evidence.process(pids[0]).comm if pids else one.path, pids),
            min(_MOST, _COST + rate / 1e8),
            f"files {'in memory (tmpfs) ' if in_memory else ''}in {folder or one.path} grow by "
            f"{rate / 1e6:.1f} MB a second, always ({one.used[-1] >> 20} MiB now){full}",
            (
                f"written in {function}" if function else "",
                "they use memory until somebody removes them" if in_memory else "",
            ),
            ("open", "--summary", "-p", str(pids[0])) if pids else ("open", "--summary"),
            place=one.path,
        )


def _writers(evidence: Evidence, system: FileSystem) -> tuple[tuple[int, ...], str]:
    """The process that writes most among those whose files stay there, and the folder of these."""
    below = f"{system.path.rstrip('/')}/"
    kept: Counter[int] = Counter()
    folders: dict[int, Counter[str]] = defaultdict(Counter)
    for one in evidence.facts.paths:
        if not one.path.startswith(below):
            continue
        if one.call in _OPENS:
            kept[one.pid] += one.times
            folders[one.pid][one.path.rpartition("/")[0]] += one.times
        elif one.call in _REMOVES:
            kept[one.pid] -= _PARTS * one.times
    written = {
        pid: sum(one.size for one in evidence.calls.get(pid, ()) if one.call in _WRITES)
        for pid, times in kept.items()
        if times > 0 and pid in evidence.processes
    }
    pid = max(written, key=written.__getitem__, default=0)
    if not written.get(pid):
        return (), ""
    return (pid,), folders[pid].most_common(1)[0][0]
