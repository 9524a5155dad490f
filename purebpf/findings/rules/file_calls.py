"""Files that are opened or looked at again and again. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence
from purebpf.findings.finding import Finding
from purebpf.findings.rules.call_groups import by_family, main_pid, members, started_by
from purebpf.findings.words import describe_site, share

__all__ = ["file_calls"]

_OPENS = frozenset({"open", "openat", "openat2"})
_LOOKS = frozenset(
    {
        "newfstatat",
        "stat",
        "lstat",
        "statx",
        "access",
        "faccessat",
        "faccessat2",
        "readlink",
        "getdents64",
    }
)
_FILE_CALL_S = 8e-6
_FILE_CALLS = 5000.0
_STATE_CALLS, _STATE_CPUS = 800.0, 0.15
"""Opens a second, and CPUs, for files that the kernel writes while they are read."""
_STATE = re.compile(r"/(proc|sys)/")
_PROCESS_FOLDER = re.compile(r"^/proc/(\d+|self|PID)(/task/\d+)?")
_MUCH = 0.1
"""The part of the calls that a folder has which is worth its name."""


def file_calls(evidence: Evidence) -> Iterator[Finding]:
    """The same files are opened or asked for again and again."""
    for family, counts in by_family(evidence).items():
        files = sum(c.times for c in counts if c.call in _OPENS | _LOOKS) / evidence.elapsed_s
        opens = sum(c.times for c in counts if c.call in _OPENS) / evidence.elapsed_s
        if files < _FILE_CALLS and not _reads_state(evidence, family, opens):
            continue
        wanted = _OPENS if opens > 500 and opens > 0.15 * files else _LOOKS | _OPENS  # noqa: PLR2004
        by_call: Counter[str] = Counter()
        for count in counts:
            if count.call in wanted:
                by_call[count.call] += count.times
        call, times = by_call.most_common(1)[0]
        pids = members(evidence, family, counts)
        word = re.sub(r"at\d?$|64$|^new|f?stat.*", "", call) or "stat"
        pid = main_pid(counts)
        place = _hot_path(evidence, pids, wanted)
        is_open = call in _OPENS
        yield Finding(
            *("file-storm", family[0], (pid, *(one for one in pids if one != pid))),
            min(1.0, max(files * _FILE_CALL_S, _state_cpus(evidence, pids))),
            f"calls {call} {times} times ({times / evidence.elapsed_s:.0f} a second){place}",
            (
                describe_site(evidence, pids, word, "stat"),
                started_by(evidence, family[0], {count.pid for count in counts}),
            ),
            ("open", "--summary", "-p", str(pid)) if is_open else ("summary", "-p", str(pid)),
        )


def _reads_state(evidence: Evidence, family: tuple[str, str], rate: float) -> bool:
    """Return True for a program that reads the state of all processes again and again."""
    pids = evidence.pids_of(family)
    return rate >= _STATE_CALLS and _state_cpus(evidence, pids) >= _STATE_CPUS


def _state_cpus(evidence: Evidence, pids: tuple[int, ...]) -> float:
    """The CPUs of processes whose opened files are mostly in /proc or /sys; else 0.0."""
    paths = [one for one in evidence.facts.paths if one.pid in pids and one.call in _OPENS]
    state = sum(one.times for one in paths if _STATE.match(one.path))
    if state * 2 <= sum(one.times for one in paths):
        return 0.0
    return sum(evidence.cpu_of[pid] for pid in pids)


def _hot_path(evidence: Evidence, pids: tuple[int, ...], calls_: frozenset[str]) -> str:
    paths: Counter[str] = Counter()
    for one in evidence.facts.paths:
        if one.pid in pids and one.call in calls_ and one.path:
            paths[one.path] += one.times
    if not paths:
        return ""
    path, times = paths.most_common(1)[0]
    if times > 0.3 * paths.total():
        return f", {share(times, paths.total())} of them for {path}"
    folders: Counter[str] = Counter()
    for path, times in paths.items():
        folder = _PROCESS_FOLDER.sub("/proc/PID", path).rpartition("/")[0]
        folders[folder or path] += times
    folder, times = folders.most_common(1)[0]
    if times < _MUCH * folders.total():
        return f", for {len(paths)} or more files"
    return f", for {len(paths)} or more files, {share(times, folders.total())} in {folder}"
