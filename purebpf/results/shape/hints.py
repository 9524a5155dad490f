"""Advice about missing names: a sentence for each runtime, and for stripped files."""

from __future__ import annotations

from collections.abc import Callable, Container

from purebpf.results.model.profile import Profile, Row
from purebpf.results.model.spelling import printable
from purebpf.symbols.frame import Frame, Reason, Unknown, is_unnamed_function
from purebpf.symbols.runtimes import (
    NATIVE_IMAGE,
    Runtime,
    is_interpreter,
    other_engine,
    script_engine,
)

__all__ = ["hints"]

_WORTH_PERCENT = 1
_NO_MAP = (Reason.ANONYMOUS, Reason.STALE_PERF_MAP)
_SHOWN = 3
_FRAME_POINTERS = "a CPython that was built with frame pointers (CFLAGS=-fno-omit-frame-pointer)"
_READ_PYTHONS = frozenset(f"3.{minor}" for minor in range(8, 16))
_PYTHONS = "CPython 3.8 to 3.15"
_MAINS = {"php": "{main}", "ruby": "<main>"}
"""The names of code outside of functions."""
_OLD_PYTHONS = frozenset({"2.7", "3.6", "3.7"})
"""Versions of which py-spy 0.4 shows the functions."""
_OLDEST_READ_JAVA = 11


def hints(profile: Profile, runtime: Callable[[int], Runtime | None]) -> list[str]:
    """Return advice for the names that a profile lacks, the heaviest first, stripped files last.

    Args:
        profile: the measured profile.
        runtime: of a process.
    """
    known: dict[int, Runtime | None] = {}
    weights: dict[int, int] = {}
    named: set[int] = set()
    for row in profile.rows():
        pid = row.labels.pid
        if pid not in known:
            known[pid] = runtime(pid)
        interpreter = known[pid]
        if interpreter is None or pid in named or not row.user:
            continue
        if _has_names(row, interpreter):
            named.add(pid)
        elif _lacks_names(row, interpreter):
            weights[pid] = weights.get(pid, 0) + row.weight
    pids: dict[Runtime, list[int]] = {}
    for pid in sorted(weights, key=weights.__getitem__, reverse=True):
        interpreter = known[pid]
        if (
            interpreter
            and pid not in named
            and 100 * weights[pid] >= _WORTH_PERCENT * profile.total
        ):
            pids.setdefault(interpreter, []).append(pid)
    reads_python = "python_stacks" in profile.about
    return [
        _sentence(named_runtime, where, reads_python=reads_python)
        for named_runtime, where in pids.items()
    ] + _find_stripped(profile, {pid for pid, each in known.items() if _is_native_image(each)})


def _is_native_image(runtime: Runtime | None) -> bool:
    return runtime is not None and runtime.name == NATIVE_IMAGE


def _find_stripped(profile: Profile, without_package: Container[int]) -> list[str]:
    """Return the places of names of stripped files."""
    weights: dict[str, int] = {}
    for row in profile.rows():
        if row.labels.pid in without_package:
            continue
        names = {
            printable(frame.module.rpartition("/")[2])
            for frame in row.user or ()
            if _is_stripped(frame)
        }
        for name in names:
            weights[name] = weights.get(name, 0) + row.weight
    least = _WORTH_PERCENT * profile.total / 100
    files = sorted((name for name in weights if weights[name] >= least), key=lambda n: -weights[n])
    if not files:
        return []
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    are, packages = ("is", "its debug package") if len(files) == 1 else ("are", "debug packages")
    which = f"{', '.join(files[:_SHOWN])}{more}"
    systems = "(Debian: -dbgsym, Fedora: -debuginfo), or ask servers with --debuginfod"
    return [f"{which} {are} stripped: install {packages} {systems}"]


def _is_stripped(entry: Frame | Unknown) -> bool:
    if isinstance(entry, Unknown):
        return entry.reason is Reason.STRIPPED
    return is_unnamed_function(entry)


def _has_names(row: Row, runtime: Runtime) -> bool:
    main = _MAINS.get(runtime.name)
    if main and any(isinstance(frame, Frame) and frame.name == main for frame in row.user or ()):
        return True
    if runtime.name == "node" and runtime.is_named:
        return True
    if runtime.name in _SCRIPTS or runtime.name in _OTHERS or runtime.name == "java":
        return any(isinstance(frame, Frame) and frame.module == "[jit]" for frame in row.user or ())
    return runtime.name == "python" and any(
        frame.kind == "python" or (isinstance(frame, Frame) and frame.name[:4] == "py::")
        for frame in row.user or ()
    )


def _lacks_names(row: Row, runtime: Runtime) -> bool:
    if runtime.name == "python":
        return any(is_interpreter(frame.module) for frame in row.user or ())
    if runtime.name in _SCRIPTS:
        return any(script_engine(frame.module) == runtime.name for frame in row.user or ())
    if runtime.name == NATIVE_IMAGE:
        return any(map(_is_stripped, row.user or ()))
    if runtime.name in _OTHERS and any(
        other_engine(frame.module) == runtime.name for frame in row.user or ()
    ):
        return True
    return any(isinstance(frame, Unknown) and frame.reason in _NO_MAP for frame in row.user or ())


def _sentence(runtime: Runtime, pids: list[int], *, reads_python: bool) -> str:
    some = ", ".join(map(str, pids[:_SHOWN])) + (", ..." if len(pids) > _SHOWN else "")
    ids = f"{'PID' if len(pids) == 1 else 'PIDs'} {some}"
    if runtime.name == "python":
        return _python(runtime, ids, is_read=reads_python)
    return _ADVICE[runtime.name](runtime, ids)


def _python(runtime: Runtime, ids: str, *, is_read: bool) -> str:
    which = f"Python {runtime.version}".strip()
    if runtime.is_named:
        return (
            f"{which} ({ids}) wrote the names of its functions, but no stack reached them: "
            f"that needs {_FRAME_POINTERS}"
        )
    if runtime.version and runtime.version not in _READ_PYTHONS:
        instead = "; `py-spy dump -p PID` shows them" if runtime.version in _OLD_PYTHONS else ""
        return f"{which} ({ids}): only the functions of {_PYTHONS} can be read{instead}"
    if is_read:
        return (
            f"the functions of {which} ({ids}) were not read in time: they end at once, "
            "or their stacks are cut; `purebpf dump PID` shows those of one that runs"
        )
    return (
        f"the functions of {which} ({ids}) were not read: `purebpf profile` reads those of "
        f"{_PYTHONS} where it walks stacks by tables (x86-64, Linux 5.15); `purebpf dump PID` "
        "shows them now"
    )


def _node(_runtime: Runtime, ids: str) -> str:
    return (
        f"the functions of node ({ids}) were not read: `purebpf profile` and `purebpf dump PID` "
        "read those of node 18 and 20 to 26 on x86-64; elsewhere, `node --perf-basic-prof "
        "--interpreted-frames-native-stack` names them"
    )


def _chromium(_runtime: Runtime, ids: str) -> str:
    return (
        f"Chromium ({ids}) names compiled JavaScript when started with "
        "--js-flags=--perf-basic-prof and --no-sandbox, which lets it write /tmp/perf-PID.map: "
        "use it only for trusted pages"
    )


def _java(runtime: Runtime, ids: str) -> str:
    which = f"Java {runtime.version}".strip()
    read = (
        f"the methods of {which} ({ids}) were not read: `purebpf profile` and `purebpf dump PID` "
        "read those of JDK 11 to 25 on x86-64"
    )
    if runtime.version and int(runtime.version) < _OLDEST_READ_JAVA:
        return read
    return read + (
        "; elsewhere, `jcmd PID Compiler.perfmap` (17 and later) names compiled ones, with "
        "-XX:+PreserveFramePointer for stacks"
    )


def _script(runtime: Runtime, ids: str) -> str:
    name, how = _SCRIPTS[runtime.name]
    return f"the functions of {name} ({ids}) were not read; {how}"


_SCRIPTS = {
    "php": (
        "PHP",
        (
            "`purebpf profile` and `purebpf dump PID` read those of 8.0 to 8.4 built without "
            "threads (NTS)"
        ),
    ),
    "ruby": (
        "Ruby",
        "`purebpf profile` and `purebpf dump PID` read those of 3.0 to 3.4 on x86-64",
    ),
}
"""Names of engines, and what names their functions."""
_OTHERS = {
    "erlang": (
        "Erlang",
        "`erl +JPperf true` (OTP 25 and later) names those that its compiler made",
    ),
    "mono": ("Mono", ""),  # --jitmap keeps the last functions of its map back
    "dotnet": (".NET", ""),
    "openj9": ("OpenJ9", ""),
    "luajit": ("LuaJIT", ""),
    "lua": ("Lua", ""),
    "guile": ("Guile", ""),
    "pypy": ("PyPy", ""),
    NATIVE_IMAGE: ("a stripped native image of GraalVM", ""),
}
"""Names of runtimes that are only recognised, and what names their functions."""


def _other(runtime: Runtime, ids: str) -> str:
    name, how = _OTHERS[runtime.name]
    return f"the functions of {name} ({ids}) cannot be read" + (how and f"; {how}")


_ADVICE: dict[str, Callable[[Runtime, str], str]] = {
    "node": _node,
    "java": _java,
    "chromium": _chromium,
    "php": _script,
    "ruby": _script,
    **dict.fromkeys(_OTHERS, _other),
}
