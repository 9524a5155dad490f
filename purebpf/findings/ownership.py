"""Separates the program's code from the code of its runtime, its libraries and the system. Pure.

A person looks for the function that they can change. For a Python program that is one outside of
the standard library and site-packages; for a native program a function of its executable, or of a
library outside of /usr/lib; for Go one of package main or of a module with a domain.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from purebpf.late_pattern import compile_later
from purebpf.symbols.short_names import merge_clones
from purebpf.tuples import NamedTuple

__all__ = [
    "RESOLVER",
    "FrameLike",
    "Program",
    "is_interpreter",
    "is_java",
    "is_script",
    "short_name",
    "spell_function",
]

_INTERPRETERS = compile_later(
    r"/(python[\d.]*t?|pypy[\d.]*|uwsgi|node|nodejs|bun|deno|php(-fpm|-cgi)?[\d.]*|ruby[\d.]*"
    r"|perl[\d.]*|java|bash|dash|sh|zsh|busybox|lua[\d.]*(jit)?|beam\.smp)$"
)
_RUNS_REQUESTS = compile_later(r"/php-(fpm|cgi)[\d.]*$")
_LIBRARIES = compile_later(
    r"/(site-packages|dist-packages|node_modules|lib/python\d|lib(32|64)?/|usr/share/"
    r"|gems/|vendor/[\w.-]+/[\w.-]+/|\.cargo/registry|rustlib/|jre/|jdk[^/]*/)|^<|^/lib|^\[|^kernel$|^node:|^built-in$|^$|^(java|jdk|sun)\."
)
_GO_OWN = compile_later(r"main\.|[\w-]+(\.[\w-]+)+/")
_GO_PLUMBING = compile_later(r"(runtime|internal/|syscall|sync)\b[^/]*\.")
_PLUMBING = compile_later(
    r"_start\b|_*libc_start|start_thread|_?_?clone3?$|([^\s(<]+ )?std::|__GI_|_*futex|_*pthread_"
    r"|__lll|syscall|sccp$|runtime\.|operator |__gnu|_Unwind"
    r"|([^\s(<]+ )?(boost|folly|absl|fmt|tbb)::"
    r"|(<?&?(mut )?)(tokio|core|alloc|std|hyper|mio|futures|hashbrown|crossbeam\w*"
    r"|parking_lot\w*|rayon\w*)::"
    r"|<[^>:]* as (core|alloc|std)::|__rust"
    r"|_*(GI_|libc_)?_*(u?sleep|(clock_)?nanosleep|p?read|p?write|readv|writev|recv|recvfrom|recvmsg"
    r"|send|sendto|sendmsg|p?poll|p?select|epoll_p?wait|accept4?|connect|wait(pid|4|id)?|f(data)?sync"
    r"|open(at)?|close|fork|vfork|dprintf|v?s?n?f?printf|vdprintf|fwrite|fputs|fgets|fread)"
    r"(64|_nocancel)?$"
    r"|_IO_|__vfprintf|vfprintf|printf_core|__stdio_|__\w+_(fma|avx2?|sse\w*|evex)(_\w+)*$"
    r"|_?_?(mem|str)(cpy|set|move|cmp|len|chr)|asm_|_int_(malloc|free)|malloc|calloc|realloc|free$"
    r"|execute_native_thread_routine|thread_start|_rt0_|main$|main\.main$"
    r"|caml_|caml(Stdlib|Camlinternal\w+|Unix|Thread|Mutex|Condition|Lwt\w*|Async\w*|Eio\w*|Base"
    r"|Core)(__|\.)"
)
_OCAML = compile_later(r"caml([A-Z][\w.$']*?)_\d+$")
"""A function of OCaml: camlShop__Cart__add_270, `camlShop.Cart.add_270` since OCaml 5."""
_OCAML_SIGN = compile_later(r"\$([0-9a-f]{2})")
RESOLVER = compile_later(r"getaddrinfo|gethostby|_nss_dns|__res_|res_n?send|dns\b", re.IGNORECASE)
"""Functions that ask a name server."""
_STARTS = frozenset(
    {"Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "_bootstrap", "run_module"}
)
"""Python's functions between the start of a thread and the program's own."""
_TOPS = frozenset({"<module>", "{main}", "<main>"})
"""Code outside of functions: of Python, PHP and Ruby."""
_JAVA_METHOD = compile_later(r"[\w$]+(\.[\w$<>]+)+$")
"""A method of generated code as purebpf names it; other runtimes' names have colons or blanks."""
_JAVA_LIBRARIES = compile_later(
    r"(javax?|jdk|sun|com\.sun|jakarta|kotlinx?|scala|groovy|clojure|akka|reactor|rx"
    r"|org\.(apache|springframework|eclipse|hibernate|postgresql|slf4j|jboss|glassfish|mariadb"
    r"|jetbrains)"
    r"|io\.(netty|undertow|vertx|micronaut|quarkus|grpc|lettuce|micrometer|projectreactor|reactivex)"
    r"|com\.(google\.common|fasterxml|zaxxer|mysql|mongodb|rabbitmq|oracle)|ch\.qos|okhttp3|okio"
    r"|redis\.clients)\."
)
_JAVA_STARTS = frozenset({"java.lang.Thread.run", "java.lang.Thread.runWith"})
_NATIVE = ("user", "inlined")
_GO_NAME = compile_later(r"[\w./%~-]+\.(\(\*|\w+\[)|([\w.%~-]+/)+[\w%~-]+\.[\w.]+$")
"""A method of a pointer, a generic function, or a function with the path of its package."""
_MODERATE = 40
_HARD_TO_READ = compile_later(r"[< ]|operator")
_SCRIPT = compile_later(
    r"\.[cm]?[jt]sx?$|^node:|\.(php\d?|phtml|inc)$|\(\d+\) : eval\(\)'d code$"
    r"|\.(rb|ru|rake)$|^<internal:"
)
"""The module of a function of JavaScript, PHP or Ruby."""


class FrameLike(Protocol):
    """A frame of any kind that this package or `purebpf.symbols.frame` has."""

    @property
    def name(self) -> str:
        """The function."""

    @property
    def module(self) -> str:
        """The file of its code."""

    @property
    def kind(self) -> str:
        """The kind of code: "user", "inlined", "python"."""


@lru_cache(4096)
def is_interpreter(exe: str) -> bool:
    """Return True if the code of an executable is not the program: Python, Node, a shell..."""
    return bool(_INTERPRETERS.search(exe))


def is_java(frame: FrameLike) -> bool:
    """Return True for a Java method."""
    return frame.kind == "java" or (
        frame.module == "[jit]" and bool(_JAVA_METHOD.match(frame.name))
    )


def is_script(frame: FrameLike) -> bool:
    """Return True for a function of Python, JavaScript, PHP or Ruby, whose module is its source."""
    return frame.kind not in _NATIVE or bool(_SCRIPT.search(frame.module))


@lru_cache(16384)
def _is_java_library(name: str) -> bool:
    return bool(_JAVA_LIBRARIES.match(name))


@lru_cache(16384)
def _is_library(module: str) -> bool:
    return bool(_LIBRARIES.search(module))


@lru_cache(16384)
def _is_plumbing(name: str) -> bool:
    return not name or name.startswith("[") or "!0x" in name or bool(_PLUMBING.match(name))


class Program(NamedTuple):
    """A process's program.

    Attributes:
        exe: the path of its executable, "" if not known.
        is_go: Go's runtime is in it.
    """

    exe: str = ""
    is_go: bool = False

    def owns(self, frame: FrameLike) -> bool:
        """Return True if a function is the program's own."""
        name, module = frame.name, frame.module
        if is_java(frame):
            return not _is_java_library(name) and "$$Lambda" not in name
        if is_script(frame):
            return self._owns_script(name, module)
        if is_interpreter(self.exe) or _is_plumbing(name):
            return False
        if self.is_go:
            return bool(_GO_OWN.match(name)) and not name.startswith("vendor/")
        return module == self.exe or not _is_library(module)

    @staticmethod
    def _owns_script(name: str, module: str) -> bool:
        if name in _STARTS or name in _TOPS or name.startswith("["):
            return False
        return not _is_library(module)

    def is_script_top(self, frame: FrameLike) -> bool:
        """Return True for the first lines of the program's own script."""
        return frame.name in _TOPS and not _is_library(frame.module)

    def is_main(self, frame: FrameLike) -> bool:
        """Return True for a function that only stands for the program if no other of it is there:
        `main`, and lambdas of C++, which have no names of their own.
        """
        is_here = self.has_own_functions and frame.module == self.exe
        return is_here and (frame.name in ("main", "main.main") or "lambda" in frame.name)

    def is_library(self, frame: FrameLike) -> bool:
        """Return True for a function of a library that calls others: not the start of a thread."""
        if is_java(frame):
            return _is_java_library(frame.name) and frame.name not in _JAVA_STARTS
        if not is_script(frame):
            return False
        return (
            frame.name not in _STARTS
            and _is_library(frame.module)
            and "<frozen" not in frame.module
        )

    @property
    def runs_requests(self) -> bool:
        """True for a server that runs scripts only in requests: PHP-FPM, and PHP behind CGI."""
        return bool(_RUNS_REQUESTS.search(self.exe))

    def owns_unnamed(self, frame: FrameLike) -> bool:
        """Return True for a function of the program's executable that has lost its name (strip)."""
        return frame.module == self.exe and "!0x" in frame.name and self.has_own_functions

    @property
    def has_own_functions(self) -> bool:
        """True if native frames of its executable can belong to the program."""
        return bool(self.exe) and not is_interpreter(self.exe) and not _is_library(self.exe)


@lru_cache(16384)
def short_name(name: str) -> str:
    """A name of C++, Go or Rust without templates and arguments, its last two parts.

    `main.(*Pool).Submit` stays, as Go spells a method of a pointer.
    """
    if _GO_NAME.match(name):
        return _without_brackets(name.rpartition("/")[2], "[", "]")
    if _OCAML.match(name):
        return _of_ocaml(name)
    text = _without_clones(name)
    lambda_of = re.search(r"([\w:~]+)(?:\([^()]*\))?(?: const)?::\{lambda", text)
    if lambda_of:
        return f"a lambda in {lambda_of[1].rpartition('<')[2]}()"
    text = text.replace("(anonymous namespace)::", "")
    if text.startswith("<"):
        text = _of_type(text)
    calls = "()" if "operator()" in text else ""
    text = re.sub(r"operator(\(\)|[<>=!+*/&|^~\[\]-]+)", "operator", text)
    kept = _without_brackets(_without_brackets(text, "<", ">"), "(", ")")
    parts = kept.removesuffix(" const").split(" ")[-1].split("::")
    return ("::".join(parts[-2:]) + calls) or name


def spell_function(name: str) -> str:
    """A function in a sentence: one of moderate length keeps its namespaces."""
    text = name.replace("(anonymous namespace)::", "")
    if "lambda" in text or _GO_NAME.match(text) or _OCAML.match(text):
        return short_name(name)
    plain = text.partition("(")[0]
    is_plain = len(plain) < _MODERATE and not _HARD_TO_READ.search(plain)
    return _without_clones(plain) if is_plain else short_name(name)


def _of_ocaml(name: str) -> str:
    """`Shop.Cart.add` of camlShop__Cart__add_270."""
    path = _OCAML.sub(r"\1", name).replace("__", ".")
    return _OCAML_SIGN.sub(lambda match: chr(int(match[1], 16)), path)


def _without_clones(name: str) -> str:
    return name if name.startswith("main.") else merge_clones(name)  # of Go


def _of_type(name: str) -> str:
    """`Type::method` of Rust's `<shop::Type as Trait>::method`."""
    depth = 0
    for at, char in enumerate(name):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if not depth:
            return name[1:at].partition(" as ")[0] + name[at + 1 :]
    return name


def _without_brackets(text: str, opening: str, closing: str) -> str:
    kept: list[str] = []
    depth = 0
    for char in text:
        if char == opening and kept:
            depth += 1
        elif char == closing and depth:
            depth -= 1
        elif not depth:
            kept.append(char)
    return "".join(kept)
