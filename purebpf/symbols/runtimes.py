"""Language runtimes, found by the files that a process has mapped."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = [
    "NATIVE_IMAGE",
    "NATIVE_IMAGE_SECTION",
    "Runtime",
    "is_interpreter",
    "is_node",
    "other_engine",
    "runtime_of",
    "script_engine",
]

NATIVE_IMAGE = "native-image"
"""The name of the runtime of a program that GraalVM has compiled ahead of time."""
NATIVE_IMAGE_SECTION = ".svm_heap"
"""The section that only such a program's file has: objects that were made before it starts."""

_INTERPRETER = compile_later(r"(?:lib)?python([23]\.\d+)[a-z]*(?:\.so[.\d]*)?")
_UNVERSIONED = compile_later(r"python[23]?|libpython3\.so[.\d]*")
_LIBRARY = compile_later(r"/python([23]\.\d+)[a-z]?/|\.cpython-3(\d+)[a-z]*-[^/]*\.so$")
_JAVA = compile_later(
    r"(?:java|jdk|jre|temurin|zulu|corretto|graalvm\D*)-?(?:1\.)?(\d{1,2})(?!\d|[A-Za-z]{2})"
)
_CHROMIUM = ("chromium", "chrome", "electron")
_NODE = compile_later(r"node(?:js)?|libnode\.so[.\d]*")
_ENGINES = {
    "php": compile_later(r"php(?:-fpm|-cgi)?[.\d]*|libphp[.\d]*\.so"),
    "ruby": compile_later(r"ruby[.\d]*|libruby[-.\d]*\.so[.\d]*"),
}
_OTHERS = {
    "erlang": ("beam", compile_later(r"beam(?:\.\w+)*")),
    "dotnet": ("coreclr", compile_later(r"libcoreclr\.so")),
    "mono": ("mono", compile_later(r"mono(?:-sgen)?|libmono(?:sgen|boehm)?-2\.0\.so[.\d]*")),
    "luajit": ("luajit", compile_later(r"luajit(?:-[\w.~+-]+)?|libluajit-5\.1\.so[.\d]*")),
    "lua": ("lua", compile_later(r"lua[.\d]*|liblua[.\d]*(?:-[\w+]+)?\.so[.\d]*")),
    "guile": ("guile", compile_later(r"guile[-.\d]*|libguile-[.\d]+\.so[.\d]*")),
    "pypy": ("pypy", compile_later(r"(?:lib)?pypy[.\d]*(?:-c)?(?:\.so)?")),
}
"""Runtimes whose functions are not read: a part of their files' names, and the whole."""


class Runtime(NamedTuple):
    """The language runtime of a program.

    `name` is "python", "node", "java", "chromium", "php" or "ruby", or one whose functions are not
    read, such as "openj9" or "erlang"; `version` comes from its paths, "3.12" or "17", or "".
    `is_named`: the runtime wrote down the names of its generated code.
    """

    name: str
    version: str = ""
    is_named: bool = False


def runtime_of(paths: Iterable[str]) -> Runtime | None:
    """Return the runtime of a process by its mapped files; None: no known runtime.

    Among several, a JVM, Chromium or node is the one that loaded the others.
    """
    runtimes: dict[str, Runtime] = {}
    version_of_python = ""
    for path in paths:
        base = path.rpartition("/")[2]
        if base == "libjvm.so":
            version = _JAVA.search(path)
            runtimes["java"] = Runtime("java", version[1] if version else "")
        elif base.startswith("libj9jit"):
            runtimes["openj9"] = Runtime("openj9")
        elif base in _CHROMIUM:
            runtimes["chromium"] = Runtime("chromium")
        elif is_node(path):
            runtimes["node"] = Runtime("node")
        elif is_interpreter(path):
            runtimes["python"] = Runtime("python")
        elif engine := script_engine(path):
            runtimes[engine] = Runtime(engine)
        elif other := other_engine(path):
            runtimes[other] = Runtime(other)
        for pattern, text in ((_INTERPRETER, base), (_LIBRARY, path)):
            if "python" not in text:
                continue
            where = pattern.fullmatch(text) if pattern is _INTERPRETER else pattern.search(text)
            if where is not None:
                version_of_python = version_of_python or where[1] or f"3.{where[2]}"
    if version_of_python and "python" in runtimes:
        runtimes["python"] = Runtime("python", version_of_python)
    order = ("openj9", "java", "chromium", "node", "python", *_ENGINES, *_OTHERS)
    return next((runtimes[name] for name in order if name in runtimes), None)


def script_engine(path: str) -> str:
    """Return the language of an engine that runs functions without naming them, "php" or "ruby";
    else "".
    """
    base = path.rpartition("/")[2]
    engines = ((name, pattern) for name, pattern in _ENGINES.items() if name in base)
    return next((name for name, pattern in engines if pattern.fullmatch(base)), "")


def other_engine(path: str) -> str:
    """Return the name of a runtime whose functions are not read, such as "erlang"; else ""."""
    base = path.rpartition("/")[2]
    for name, (part, pattern) in _OTHERS.items():
        if part in base and pattern.fullmatch(base):
            return name
    return ""


def is_node(path: str) -> bool:
    """Return True if a file is node, or its library."""
    base = path.rpartition("/")[2]
    return "node" in base and bool(_NODE.fullmatch(base))


def is_interpreter(path: str) -> bool:
    """Return True if a file is CPython, which runs Python functions in frames that do not name
    them.
    """
    base = path.rpartition("/")[2]
    if "python" not in base:  # so most files need no pattern
        return False
    return bool(_INTERPRETER.fullmatch(base) or _UNVERSIONED.fullmatch(base))
