"""A verifier log in three parts: the reason, the instruction, the C line.

The log is written for people and changes with every kernel, so nothing here matches a reason,
except that a nameless helper gets its name. purebpf recognises the noise around the reason
(instructions, register states, statistics), and the last line that is none of these is the one that
decided. Linux 7.3 puts a report behind that line (`verifier_report`), whose parts are separated.
Seen on 4.19 to 7.3. `verifier_advice` has advice against the commonest reasons.
"""

from __future__ import annotations

import re
import struct

from purebpf.btf.types.parse import Btf
from purebpf.loader.load.verifier_report import split_report
from purebpf.tuples import NamedTuple

__all__ = ["Explanation", "explain", "source_line"]

_LINE_INFO = struct.Struct("=IIII")
_COLUMN_BITS = 10

_INSTRUCTION = re.compile(r"(\d+): \([0-9a-f]{2}\) ")
_PLACE = re.compile(r"\bat insn (\d+)\b")
_UNKNOWN_HELPER = re.compile(r"\bfunc unknown#(\d+)$")
_AFTER_JUMP = re.compile(r"(?P<jump>\d+: \([0-9a-f]{2}\) .*?goto pc[+-]\d+) +(?!\d+:|from |;)")
"""A jump with something but a state behind it: not every verdict of Linux 6.18 has its own line."""
_COMMENT = re.compile(r"; (?P<text>.*?)(?: @ (?P<file>\S+):(?P<line>\d+))?$")
_NOISE = re.compile(
    r"""
      \d+:\ (?:\([0-9a-f]{2}\)\ |safe$|R\d|\(|frame)  # an instruction, or a state before one
    | \s*\d+:\ [.0-9]{10}\ \(                         # live registers, per instruction
    | \s*(?:frame\d+:\ )?R\d+(?:_[a-z]+)?=            # a state, also of a caller's frame
    | from\ \d+\ to\ \d+:                             # a state at a jump
    | ;\                                              # a C line
    | processed\ \d+\ insns | verification\ time\ | stack\ depth\ | peak_states
    | mark_precise: | regs=\w+\ stack= | last_idx\ \d+ | parent\ (?:didn't|already|state)\b
    | propagating\  | SCC\  | \(\d+\)\ (?:frame|live)\b
    | (?:cur|old)\ state: | caller: | callee: | to\ caller\ at\  | returning\ from\ callee:
    | func\#\d+\ @ | Live\ regs\ before\  | Validating\  | Func\#\d+\  | arg\#\d+\ reference\ type
    """,
    re.VERBOSE,
)


class Explanation(NamedTuple):
    """The part of a log that matters.

    Attributes:
        line: the line that decided, or "" when the log has none.
        instruction: the index of the last instruction it looked at, or None.
        source: the C line of that instruction as the log quotes it, `file:line: text` (before
            Linux 6.10 only the text), or "".
        suggestion: the kernel's own (Linux 7.3), or "".
    """

    line: str = ""
    instruction: int | None = None
    source: str = ""
    suggestion: str = ""


def explain(log: str) -> Explanation:
    """Find the deciding line of a verifier log, which may be cut at either end."""
    log, report = split_report(log)
    lines = _AFTER_JUMP.sub(r"\g<jump>\n", log).splitlines()
    decided = _deciding(lines)
    instruction: int | None = None
    source = ""
    for line in reversed(lines[: decided + 1]):
        if instruction is None and (match := _INSTRUCTION.match(line)):
            instruction = int(match[1])
        elif match := _COMMENT.match(line):
            source = _quote_line(match)
            break
    if instruction is None and decided >= 0 and (match := _PLACE.search(lines[decided])):
        instruction = int(match[1])  # it had only been quoted when it was refused
    line = lines[decided].strip() if decided >= 0 else report.reason or report.title
    if report.instruction is not None:
        instruction, source = report.instruction, report.source or source
    return Explanation(_name_helper(line), instruction, source, report.suggestion)


def _name_helper(line: str) -> str:
    """The line, with the name of a helper that is too new for the kernel to know it."""
    match = _UNKNOWN_HELPER.search(line)
    if match is None:
        return line
    from purebpf.abi.helpers import bpf_func_id

    try:
        name = bpf_func_id(int(match[1])).name.replace("BPF_FUNC_", "bpf_")
    except ValueError:
        return line
    return f"{line}: this kernel has no {name}()"


def source_line(line_info: bytes, btf: Btf, instruction: int) -> str:
    """The C line of an instruction, `file:line: text`, by the program's own line table.

    `line_info` is struct bpf_line_info as given to BPF_PROG_LOAD; "" when it does not reach.
    """
    line = ""
    for offset, file_name, text, line_col in _LINE_INFO.iter_unpack(line_info):
        if offset > instruction:
            break
        where = f"{_base_name(btf.string(file_name))}:{line_col >> _COLUMN_BITS}"
        line = f"{where}: {btf.string(text).strip()}"
    return line


def _deciding(lines: list[str]) -> int:
    """The index of the last line that says something; -1 when none does."""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].strip() and not _NOISE.match(lines[index]):
            return index
    return -1


def _quote_line(match: re.Match[str]) -> str:
    text = match["text"].strip()
    return f"{match['file']}:{match['line']}: {text}" if match["file"] else text


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]
