"""Waits inside of the kernel: its locks, its memory, and calls that are not expected to wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.finding import Finding
from purebpf.findings.grouping import by_function
from purebpf.findings.words import chief, count_threads, describe_activity, share
from purebpf.late_pattern import compile_later
from purebpf.symbols.short_names import merge_clones

__all__ = ["kernel_waits"]

_LEAST, _MOST = 0.1, 0.5
_LONG, _PARTS = 40, 3
"""Characters and parts of a path that leave no room for the rest of a finding."""
_KINDS = ("call", "kernel-lock", "reclaim", "remote-file")
_PLUMBING = compile_later(
    r"_*(schedule|wait_woken|do_syscall|entry_SYSCALL|x64_sys|se_sys|do_sys|ksys|el0|invoke_sysc"
    r"|wait_for_common|preempt|prepare_to_wait)"
)
_LOCKING = compile_later(r"_*(rwsem|mutex|down_|percpu_rwsem|osq_|schedule)")
_TAKES_TURNS = compile_later(r"\w*(rwsem|mutex)|down_|osq_")
"""Functions of the kernel's own locks."""
_OF_LOCKS = (
    (compile_later(r"mmap_(write|read)?_?lock|lock_mm|vm_mmap|vm_munmap|__mprotect|do_mprotect"
                   r"|mprotect_fixup|exc_page_fault|do_user_addr|lock_vma"),
     "threads of one process change or extend its memory map (mmap, munmap, page faults) in turn"),
    (compile_later(r"do_unlinkat|do_renameat|lookup_open|open_last|path_openat|filename_create"
                   r"|iterate_dir|do_rmdir|do_mkdirat"),
     "the lock of a folder: files are made, renamed, removed or listed in it"),
    (compile_later(r"\w*(buffered_write|file_write|write_iter|dio_write)"),
     "the lock of a file: its writers take turns"),
    (compile_later(r"\w*unix_\w*"), "the lock of a unix socket"),
)  # fmt: skip
"""What the functions below a wait for a lock of the kernel mean."""
_SCANNED = compile_later(r"fanotify_")
_REASONS = (
    (
        compile_later(r"sk_stream_wait_close|tcp_close|inet_csk_.*linger"),
        "the peer has not taken all data yet, and SO_LINGER makes close wait for that",
    ),
    (compile_later(r"synchronize_rcu|wait_rcu"), "the kernel waits for all CPUs (RCU)"),
    (compile_later(r"do_coredump|coredump_wait"), "a core dump is written"),
    (_SCANNED, "a program that has to allow each open or read (fanotify: a virus scanner) decides"),
    (compile_later(r"seccomp_do_user_notif"), "a supervisor decides on each such call (seccomp)"),
)  # fmt: skip
"""What the functions of the kernel below a wait mean."""
_TEXTS = {
    "call": "{many} in {call}, which is not expected to wait ({kernel})",
    "kernel-lock": "{many} for a lock in the kernel, in {call} ({kernel})",
    "reclaim": "{many} until the kernel finds free memory ({kernel}): the machine is short of it",
    "remote-file": "{many} for a file server or a FUSE program, in {call} ({kernel})",
}


def kernel_waits(evidence: Evidence) -> Iterator[Finding]:
    """Threads wait in the kernel for nothing that they asked to wait for."""
    for stays in by_function(evidence, evidence.work(*_KINDS), lambda stay: stay.kind):
        cost, stay = evidence.rate(stays), max(stays, key=lambda one: one.seconds)
        if cost < _LEAST:
            continue
        pids, times = chief(stays), sum(one.times for one in stays)
        where = next((one.own for one in stays if one.own is not None), None)
        text = _TEXTS[stay.kind].format(
            many=count_threads(stays, "wait"),
            call=_calls(stays) or "page faults",
            kernel=_function(stay),
        )
        each_ms = 1000 * seconds_of(stays) / max(1, times)
        yield Finding(
            *("kernel-wait", evidence.process(pids[0]).comm, pids, cost),
            text + (f", in {evidence.spell(where)}" if where else ""),
            (
                _reason(stay),
                *(_files(evidence, stays), _waker(evidence, stays)),
                f"{times} times, {each_ms:.0f} ms each" if times > 1 else "",
            ),
            ("offcpu", "-p", str(pids[0])),
            own=evidence.source(where),
        )


def _calls(stays: list[Stay]) -> str:
    calls: Counter[str] = Counter()
    for stay in stays:
        calls[stay.call] += round(1e6 * stay.seconds)
    named = [name for name, weight in calls.most_common(2) if name and weight * 4 > calls.total()]
    return " and ".join(named)


def _function(stay: Stay) -> str:
    pattern = _LOCKING if stay.kind == "kernel-lock" else _PLUMBING
    names = [name for name in stay.kernel if not pattern.match(name)]
    return merge_clones(next(iter(names), "") or next(iter(stay.kernel), "?"))


def _reason(stay: Stay) -> str:
    is_lock = any(map(_TAKES_TURNS.match, stay.kernel))
    for pattern, text in _REASONS + _OF_LOCKS if is_lock else _REASONS:
        if any(map(pattern.match, stay.kernel)):
            return text
    return ""


def _files(evidence: Evidence, stays: list[Stay]) -> str:
    """The file or folder that waits for a file server or a scanner are about."""
    if not any(one.kind == "remote-file" or any(map(_SCANNED.match, one.kernel)) for one in stays):
        return ""
    paths, folders = Counter[str](), Counter[str]()
    for one in evidence.facts.paths:
        if one.pid in {stay.pid for stay in stays} and one.path and one.call != "connect":
            paths[one.path] += one.times
            folders[f"{one.path.rpartition('/')[0]}/"] += one.times
    for names in (paths, folders):
        for name, times in names.most_common(1):
            if times > _MOST * names.total():
                return f"of {_shortened(name)}"
    return ""


def _shortened(path: str) -> str:
    """A long path without its start: `.../share/prices.csv`."""
    parts = path.split("/")
    return f".../{'/'.join(parts[-2:])}" if len(path) > _LONG and len(parts) > _PARTS else path


def _waker(evidence: Evidence, stays: list[Stay]) -> str:
    """A clause about another program that ends these waits most."""
    wakers, mine = evidence.wakers_of(stays), {stay.pid for stay in stays}
    for tid, weight in wakers.most_common(1):
        pid = evidence.process_of_thread.get(tid, 0)
        if pid not in evidence.processes or pid in mine:
            return ""
        does = [one for one in evidence.by_thread.get(tid, ()) if one.own and one.is_work]
        activity = describe_activity(evidence, does)
        part = share(weight, wakers.total())
        return f"{evidence.name(pid)} ends {part} of these waits" + (
            f"; it {activity}" if activity else ""
        )
    return ""
