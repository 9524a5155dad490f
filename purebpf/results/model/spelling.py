"""The spelling of addresses in text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.late_pattern import compile_later

if TYPE_CHECKING:
    from purebpf.symbols.frame import Frame, Unknown

__all__ = [
    "MISSED_KERNEL",
    "MISSED_USER",
    "NO_STACK",
    "UNKNOWN",
    "count_text",
    "printable",
    "spell_location",
]

UNKNOWN = "[unknown]"
MISSED_USER = "[Missed User Stack]"
MISSED_KERNEL = "[Missed Kernel Stack]"
NO_STACK = "[no stack]"


def spell_location(entry: Frame | Unknown, *, offset: bool = True) -> str:
    """Name, offset and module, as bcc prints them: `clone+0x2d [libc.so.6]`.

    Where lines were requested, file and line follow: `clone+0x2d [libc.so.6] clone.S:91`.
    """
    from purebpf.results.model.stack_end import CUT  # not for commands without stacks
    from purebpf.symbols.frame import Unknown, is_unnamed_function

    module = entry.module.rpartition("/")[2] or entry.module
    if module and not module.startswith("["):  # "[vdso]" has its brackets
        module = f"[{module}]"
    where = f" {module}" if module else ""
    if isinstance(entry, Unknown):
        return UNKNOWN + printable(where)
    if is_unnamed_function(entry):  # its name has the module
        where = ""
    if entry.kind == CUT:
        return entry.name
    if entry.kind == "inlined":
        where = f" (inlined){where}"
    elif offset and entry.kind != "python":
        where = f"+{entry.offset:#x}{where}"
    if entry.file:
        where += f" {entry.file.rpartition('/')[2]}:{entry.line}"
    return printable(entry.name + where)


def printable(text: str) -> str:
    """Return the text with `?` for characters that would move a terminal's cursor or break a line.

    Names come from other people's programs: a comm may hold a newline or an escape sequence.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)


_NOUN = compile_later(r"(?P<before>(new|failed|child|other) )?(?P<noun>\w+s)\b")
_VERBS = {"were": "was", "are": "is", "have": "has"}
_VERB = compile_later(r"\b(were|are|have)\b")


def count_text(number: int, text: str) -> str:
    """A number before a sentence that begins with a plural: `1 thread was off the CPU`."""
    match = _NOUN.match(text)
    if number != 1 or not match:
        return f"{number} {text}"
    noun = match["noun"]
    if noun.endswith("ies"):
        noun = f"{noun[:-3]}y"
    else:
        noun = noun.removesuffix("es") if noun.endswith(("ches", "sses")) else noun[:-1]
    rest = _VERB.sub(lambda verb: _VERBS[verb[1]], text[match.end() :], count=1)
    return f"1 {match['before'] or ''}{noun}{rest}"
