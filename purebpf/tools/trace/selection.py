"""The calls that `-e` selects: names, patterns, groups, and exclusions. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from purebpf.tools.trace.kinds import signature

__all__ = ["GROUPS", "UnknownCallError", "select", "split"]

_PROCESS = ("clone", "clone3", "execve", "execveat", "exit", "exit_group", "fork", "kill",
            "pidfd_open", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tgkill",
            "tkill", "unshare", "vfork", "wait4", "waitid", "waitpid")  # fmt: skip
_MEMORY = ("brk", "get_mempolicy", "madvise", "mbind", "memfd_create", "memfd_secret",
           "migrate_pages", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mmap2", "mprotect",
           "move_pages", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap",
           "pkey_alloc", "pkey_free", "pkey_mprotect", "process_madvise", "process_mrelease",
           "process_vm_readv", "process_vm_writev", "remap_file_pages", "set_mempolicy",
           "set_mempolicy_home_node", "shmat", "shmdt")  # fmt: skip
_NETWORK = ("listen", "recv", "recvmmsg", "send", "sendfile", "sendmmsg", "shutdown",
            "socketcall")  # fmt: skip
_SIGNALS = ("pause", "rt_sigreturn", "sigreturn", "signal", "sigsuspend", "rt_sigqueueinfo",
            "rt_tgsigqueueinfo", "sigaltstack", "rt_sigaction", "rt_sigpending", "rt_sigsuspend",
            "rt_sigprocmask", "rt_sigtimedwait", "signalfd", "signalfd4", "kill", "tkill", "tgkill",
            "pidfd_send_signal")  # fmt: skip

_BY_KIND = {
    "%file": {"path"},
    "%desc": {"fd", "dirfd", "fds", "epoll_ctl"},
    "%net": {"sa", "message", "sockopt", "socktype"},
}
_BY_NAME = {"%process": _PROCESS, "%memory": _MEMORY, "%net": _NETWORK, "%signal": _SIGNALS}
_SPECIAL = {"fcntl": "%desc"}

GROUPS = ("%file", "%net", "%process", "%desc", "%memory", "%signal")
"""Groups of calls: those that take a path, are of the network, make processes, and so on."""

_ALIASES = {"%network": "%net"}


class UnknownCallError(ValueError):
    """A word of `-e` that fits no call."""


def split(words: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that ask for system calls, and those for tracepoints: `sched:*`."""
    parts = [part for word in words for part in word.split(",") if part]
    points = tuple(part for part in parts if ":" in part)
    return tuple(part for part in parts if ":" not in part), points


def select(words: Iterable[str], names: Iterable[str]) -> set[str]:
    """The calls among `names` that words ask for, in their order.

    A word is a name, a pattern with `*`, `?` or `[...]`, or a group; `!` before it excludes its
    calls. If the first word is an exclusion, all other calls are wanted.

    Raises:
        UnknownCallError: a word that fits no call.
    """
    call_names = set(names)
    given = [part for word in words for part in word.split(",") if part]
    wanted = set(call_names) if not given or given[0].startswith("!") else set()
    for word in given:
        fits = _matching(_ALIASES.get(word.lstrip("!"), word.lstrip("!")), call_names)
        if not fits:
            raise UnknownCallError(_explain(word.lstrip("!"), call_names))
        wanted = wanted - fits if word.startswith("!") else wanted | fits
    return wanted


def _matching(word: str, call_names: set[str]) -> set[str]:
    if word.startswith("%"):
        kinds = _BY_KIND.get(word, set())
        listed = call_names.intersection(_BY_NAME.get(word, ()))
        listed |= {name for name, group in _SPECIAL.items() if group == word and name in call_names}
        return listed | {name for name in call_names if kinds & _kinds(name)} if kinds else listed
    return {name for name in call_names if fnmatchcase(name, word)}


def _kinds(name: str) -> set[str]:
    call_names = signature(name)
    return {kind.name for kind in call_names.kinds} if call_names else set()


def _explain(word: str, call_names: set[str]) -> str:
    if word.startswith("%"):
        return f"unknown group {word!r} (known: {', '.join(GROUPS)})"
    from difflib import get_close_matches

    close = get_close_matches(word, call_names)
    return f"unknown system call {word!r}" + (f" (similar: {', '.join(close)})" if close else "")
