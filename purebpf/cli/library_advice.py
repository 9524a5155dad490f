"""The advice of the library's errors, in the options of a command: `pid=` is `-p PID` there."""

from __future__ import annotations

__all__ = ["LIBRARY_CALL", "OPTIONS", "with_options"]

_STORAGE = {"stacks": "--stack-storage-size"} | dict.fromkeys(
    ("counts", "sums", "samples", "sites"), "--hash-storage-size"
)
_ROWS = {"rows": "--map-entries", "nodes": "--map-entries"}
OPTIONS = {
    **dict.fromkeys(("mem", "offcpu", "profile", "wall"), _STORAGE),
    **dict.fromkeys(("io", "kwork", "latency", "lock"), _ROWS),
    "sampleip": {"counts": "--map-entries"},
    "summary": dict.fromkeys(("rows", "histograms", "names"), "--map-entries"),
    "types": {"counts": "--map-entries"},
}
"""The options for the sizes of maps: by command, by map."""

_ABOUT_OBJECTS = ("inspect", "new", "doctor")
"""Commands for those who write programs with the library."""
_WITH_PID = {
    *("cpudist", "dump", "exec", "io", "latency", "lock", "mem", "offcpu", "open", "profile"),
    *("record", "runqlat", "sampleip", "script", "stat", "summary", "tcp", "top", "trace"),
    *("types", "wall"),
}
"""Commands with -p."""

LIBRARY_CALL = r"\b(?:spec\.\w+|load)\(|(?<![\w.-])[a-z_]{2,}=(?![\w\"'/%{*+-])"
"""A regular expression: a method of a spec, a call of load(), or a keyword without a value."""
_CLAUSE = rf"(?:^|[,;:.] |, or )(?:(?![;:.,] ).)*?(?:{LIBRARY_CALL})(?:\([^()]*\)|(?![;.] ).)*"
_WORDS = (
    (r"with pid= for one process", "with -p PID for one process", ""),
    (r"; use pid=", "; use -p PID", ""),
    (r", or where BPF is delegated: load\(\.\.\., token=\)", "", ""),
)
_WITHOUT_KERNEL = r"profile your own process with exclude_kernel=1 (\(.*?\)), or "
_SMALLER = r"make it smaller: spec\.resize\((\w+)=fewer_entries\)"


def with_options(text: str, name: str) -> str:
    """Return an error of the library for the user of a command.

    The advice names options of the command. A clause whose advice the command has no option for is
    left out.

    Args:
        text: the error.
        name: as the user typed it, "purebpf latency".
    """
    import re  # only for errors

    command = name.rpartition(" ")[2].rpartition(".")[2]
    if command in _ABOUT_OBJECTS:
        return text
    if found := re.search(_SMALLER, text):
        option = OPTIONS.get(command, {}).get(found[1])
        advice = f"make it smaller with {option}, or raise that limit" if option else ""
        text = text.replace(found[0], advice or "raise that limit")
    for library, option, nothing in _WORDS:
        text = re.sub(library, option if command in _WITH_PID else nothing, text)
    has_modifiers = command in ("record", "stat")
    own = r"leave the kernel out with -e EVENT:u \1, or " if has_modifiers else ""
    text = re.sub(_WITHOUT_KERNEL, own, text)
    return re.sub(_CLAUSE, "", text) or text
