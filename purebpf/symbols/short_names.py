"""C++ and Rust names as people say them: `sort_rows(vector<string>&, ulong)`. Pure.

It handles text only: it removes additions of the compiler (allocators, ABI tags, inline namespaces,
return types of templates), `std::`, and the namespaces in front of Rust's types.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from purebpf.late_pattern import compile_later

__all__ = ["identifier", "merge_clones", "shorten", "spellings"]

_NOISE = compile_later(r"\[abi:\w+\]|std::__cxx11::|std::__1::|std::|\(anonymous namespace\)::")
_UNSIGNED = compile_later(r"\bunsigned (long long|long|int|short|char)\b")
_DEFAULTS = compile_later(
    r"(allocator|char_traits|default_delete|less|equal_to|hash|polymorphic_allocator)<"
)
_BASIC = compile_later(r"\bbasic_(\w+)<char>")
_RUST_HASH = compile_later(r"::h[0-9a-f]{16}$")
_TURBOFISH = compile_later(r"::<(?!impl )")
_QUALIFIERS = compile_later(r"( const| volatile|&|&&| noexcept| \[clone [^\]]*\])*$")
_CLONE = compile_later(r"(\.(isra|constprop|part|cold|llvm)(\.\d+)*)+$| \[clone [^\]]*\]")
"""What GCC and LLVM append to the name of a copy or a part of a function."""
_IDENTIFIER = compile_later(r"[A-Za-z_$][\w$]*")
_KEPT_OF_A_PATH = 2


@lru_cache(maxsize=65536)
def shorten(name: str) -> str:
    """The short form of a demangled name; a name of C stays as it is."""
    if "::" not in name and "(" not in name and "<" not in name:
        return name
    path, parameters, qualifiers = _parts(name)
    if parameters is None and "::" in path:
        return _rust(_RUST_HASH.sub("", name))
    if path.endswith(" "):  # `StubRoutines (1)` of HotSpot: no demangler has a space there
        return name
    return _cpp(_without_result(path) + (parameters or "") + qualifiers)


def merge_clones(name: str) -> str:
    """The name of the function in the source: `try_to_wake_up` of `try_to_wake_up.part.0`."""
    return _CLONE.sub("", name) if "." in name else name


def spellings(name: str) -> Iterator[str]:
    """Yield the names that a user may type for a demangled name: whole, short, without
    parameters or arguments.
    """
    for whole in (name, shorten(name)):
        path, _, _ = _parts(whole)
        path = _without_result(path)
        yield whole
        yield path
        if path.endswith(">") and "operator" not in path:
            yield path[: _opening(path, "<", ">")]
    if "::" in name and _parts(name)[1] is None:
        yield from _rust_spellings(_RUST_HASH.sub("", name))


def _rust_spellings(name: str) -> Iterator[str]:
    """`db::Pool::get` for `<shop::db::Pool<T> as Store>::get::<U>`: the ends of its path."""
    words = [*_outside(name, "::")]
    if words[0].startswith("<"):
        of_type = next(_outside(words[0][1:-1], " as "))
        words[:1] = _outside(of_type, "::")
    words = [word for word in (word.partition("<")[0] for word in words) if word]
    for first in range(len(words) - 1):
        yield "::".join(words[first:])


def identifier(spelling: str) -> str:
    """The last identifier of such a spelling, which the mangled name has as well; "" without one.

    It lets most of a symbol table be passed over without demangling.
    """
    path, _, _ = _parts(spelling)
    if path.endswith(">"):
        path = path[: _opening(path, "<", ">")]
    last = path.rpartition("::")[2].lstrip("~")
    if last.startswith("operator") or not _IDENTIFIER.fullmatch(last):
        return ""
    return last


def _parts(name: str) -> tuple[str, str | None, str]:
    """Return the text before the list of parameters, the list, and the text behind it; None: no
    list.
    """
    qualifiers = _QUALIFIERS.search(name)
    end = qualifiers.start() if qualifiers else len(name)
    if not name[:end].endswith(")") or name[:end].endswith("(anonymous namespace)"):
        return name, None, ""
    start = _opening(name[:end], "(", ")")
    if not start:
        return name, None, ""
    return name[:start], name[start:end], name[end:]


def _opening(text: str, opening: str, closing: str) -> int:
    """Return the position of the bracket that the last character closes."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] == closing:
            depth += 1
        elif text[at] == opening:
            depth -= 1
            if not depth:
                return at
    return len(text)


def _without_result(path: str) -> str:
    """A function's name without the type of its result, which names of templates begin with."""
    operator = path.find("operator")
    depth = 0
    start = 0
    for at, char in enumerate(path):
        if at == operator:
            break
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == " " and not depth:
            start = at + 1
    return path[start:]


def _cpp(name: str) -> str:
    short = _NOISE.sub("", name)
    short = _UNSIGNED.sub(lambda match: f"u{match[1].replace(' ', '')}", short)
    if "operator" not in short:
        short = _shorten_arguments(short)
    return short.replace("> >", ">>").replace("basic_string<char>", "string")


def _shorten_arguments(text: str) -> str:
    """The same without default template arguments, however deep."""
    start = text.find("<")
    if start < 0:
        return _BASIC.sub(r"\1", text)
    end = _closing(text, start)
    arguments = [_shorten_arguments(argument) for argument in _split(text[start + 1 : end])]
    kept = [argument for argument in arguments if not _DEFAULTS.match(argument)] or arguments[:1]
    head = _BASIC.sub(r"\1", f"{text[:start]}<{', '.join(kept)}>")
    return head + _shorten_arguments(text[end + 1 :])


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "<(":
            depth += 1
        elif text[at] in ">)" and text[at - 1] != "-":
            depth -= 1
            if not depth:
                return at
    return len(text)


def _split(arguments: str) -> Iterator[str]:
    """Arguments that commas separate; those in brackets are part of one."""
    return (argument.strip() for argument in _outside(arguments, ","))


def _outside(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that are not in brackets."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char in "<([":
            depth += 1
        elif char in ">)]":
            depth -= 1
        elif not depth and at >= start and text.startswith(separator, at):
            yield text[start:at]
            start = at + len(separator)
    yield text[start:]


def _rust(name: str) -> str:
    """Paths by their last words: two of the function, one of each type in brackets."""
    name = _TURBOFISH.sub("<", name)
    start = name.find("<")
    if start < 0:
        return _last(name, _KEPT_OF_A_PATH)
    pieces: list[str] = []
    word, depth = "", 0
    for char in name:
        if char in "<>(),; &[]":
            is_method = word.startswith("::")  # of the type in the brackets before
            kept = _last(word, 1) if depth or char == "<" else word
            pieces.append(f"::{kept}" if is_method and kept != word else kept)
            word = ""
            pieces.append(char)
            depth += {"<": 1, ">": -1}.get(char, 0)
        else:
            word += char
    return "".join([*pieces, word])


def _last(path: str, kept: int) -> str:
    words = path.split("::")
    if words[-1].startswith("{"):
        kept += sum(word.startswith("{") for word in words[-kept:])
    return "::".join(words[-kept:])
