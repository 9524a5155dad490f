"""The lines that `perf script` prints, one at a time: sample headers, frames, source lines.

Columns follow perf_sample__fprintf_start() and process_event() in tools/perf/builtin-script.c and
sample__fprintf_callchain() in tools/perf/util/evsel_fprintf.c of the Linux source.
"""

from __future__ import annotations

import re

from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.tuples import NamedTuple

__all__ = [
    "Header",
    "add_source_line",
    "is_source_code",
    "read_bare_header",
    "read_frame",
    "read_header",
    "read_leaf",
    "read_lost",
    "read_record",
]

_THREAD = r"(?:(?P<pid>-?\d{1,10})/)?(?P<tid>-?\d{1,10})"
_CPU = r"\[(?P<cpu>\d{1,10})\](?:\s+|$)"
_MODE = r"(?:[KUHGgMESp]{1,4}\s+)?"
_DAY = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+"
_TIME = rf"(?:{_DAY}(?:\d+\.\d+:(?=\s|$))?|\d+\.\d+:(?=\s|$))"
_DATED = re.compile(
    r"^(?:VM: *\d+ )?(?:VCPU:\d+ )?\s*(?P<comm>(?:\S.*?)??)\s*"
    rf"(?:(?<!\S){_THREAD}\s+)?(?<!\S)"
    rf"(?:{_CPU}{_MODE}{_TIME}?|{_MODE}{_TIME})(?P<rest>.*)$",
    re.ASCII,
)
"""A header with the CPU or the time: a thread's name may have digits and blanks before them."""

_EVENT = re.compile(r"(?:^|\s)(?P<event>[^\s\d:]\S*?):(?=\s|$)(?P<leaf>.*)$")
_UNDATED = re.compile(rf"^(?P<comm>.*?)(?P<gap>\s*)(?<!\S){_THREAD}\s*$", re.ASCII)
_NUMBER = re.compile(r"^(?P<before>.*\S)(?P<gap>\s+)(?P<number>\d+)\s*$", re.ASCII)
_TID_WIDTH, _PERIOD_WIDTH, _ADDRESS_WIDTH = 5, 10, 17
"""The least columns that perf gives these numbers, and the blank before an address."""

_FRAME = re.compile(
    r"^\s*(?P<address>[0-9a-f]{1,16})(?:\s+(?P<name>\S.*?))??"
    r"(?:\s+\((?P<module>/.*|\[.*\][^()]*|[^()]*(?: \(deleted\))?)\))?\s*$"
)
_LEAF = re.compile(
    r"^(?:.*\s)?(?P<frame>[0-9a-f]{4,16}\s+\S.*?\s\((?:[^()]|\(deleted\))*\))(?:\s.*)?$"
)
_COLUMN = re.compile(r"(?P<gap>^|\s+)(?P<address>[0-9a-f]{1,16})(?=\s|$)")
_OFFSET = re.compile(r"^(?P<name>.+)\+0x(?P<offset>[0-9a-f]{1,16})$")
_FILE_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_SOURCE = re.compile(r"^\s+(?P<file>\S.*?):(?P<line>\d{1,9})(?P<end> \(.*\))?$")
_NO_SOURCE = re.compile(r"^\s+(?:\S+\+0x[0-9a-f]+|\S+\[[0-9a-f]+\]|\?\?:0|:0)(?: \(.*\))?$")
_CODE = re.compile(r"^\|\d+ |^\s+(?:ilen: \d+\s*)?(?:insn:(?: [0-9a-f]{2})+)?\s*$")
_PERIOD = re.compile(r"\s*\d+\s*")
_RECORD = re.compile(r"(?:^|[\s:])(?P<type>PERF_RECORD_[A-Z0-9_]+)(?P<rest>.*)$")
_LOST = re.compile(r"\blost (\d{1,18})\b", re.ASCII)
_KERNEL_HALF = 1 << 63
_DELETED = " (deleted)"
_INLINED = "inlined"
_UNKNOWN = "[unknown]"
_INSTRUCTION = "insn:"
"""Behind the address of each instruction between two branches (-F brstackinsn)."""


class Header(NamedTuple):
    """The line that begins a sample; -1 for a number that it lacks.

    `leaf` is the text behind the event: the whole stack, where perf prints no call chains.
    """

    comm: str
    pid: int
    tid: int
    cpu: int
    event: str
    leaf: str


def read_header(line: str) -> Header | None:
    """A header that only a header can be: with a CPU or a time, or with a thread and an event."""
    dated = _DATED.match(line)
    if dated is not None:
        event = _EVENT.search(dated["rest"])
        leaf = event["leaf"] if event else dated["rest"]
        cpu = int(dated["cpu"] or -1)
        return _header(dated, event, leaf, cpu)
    event = _EVENT.search(line)
    if event is None:
        return None
    thread = _thread(_without_period(line[: event.start()]))
    if thread is None:
        return None
    return _header(thread, event, event["leaf"])


def read_bare_header(line: str) -> Header | None:
    """A header without CPU and time: a thread, its name, or both, an event, then perhaps a leaf.

    Any text may be one: frames must follow, unless the line ends with a leaf.
    """
    head, leaf = line, ""
    columns = [found for found in _COLUMN.finditer(line) if _is_column(found)]
    if columns:
        head, leaf = line[: columns[-1].start()], line[columns[-1].start() :]
    if not head.strip() and not leaf:
        return None
    head = _without_period(head)
    thread = _thread(head)
    if thread is not None:
        return _header(thread, None, leaf)
    event = _EVENT.search(head)  # behind the name, or alone
    if event is None or event["leaf"].strip():
        return Header(head.strip(), -1, -1, -1, "", leaf)
    return Header(head[: event.start()].strip(), -1, -1, -1, event["event"], leaf)


def _without_period(head: str) -> str:
    """Return the head of a line without the period at its end, which is wider than a thread."""
    number = _NUMBER.match(head)
    if number and len(number["gap"]) - 1 + len(number["number"]) >= _PERIOD_WIDTH:
        return number["before"]
    return head


def _is_column(found: re.Match[str]) -> bool:
    return len(found["gap"]) + len(found["address"]) >= _ADDRESS_WIDTH


def _thread(head: str) -> re.Match[str] | None:
    """The thread at the end of a header; perf fills its number up to five columns."""
    thread = _UNDATED.match(head.rstrip())
    if thread is None or thread["pid"]:
        return thread
    is_first = not thread["comm"].strip()
    width = len(thread["gap"]) - (not is_first) + len(thread["tid"])
    return thread if is_first or width >= _TID_WIDTH else None


def _header(thread: re.Match[str], event: re.Match[str] | None, leaf: str, cpu: int = -1) -> Header:
    comm, pid, tid = thread["comm"].strip(), thread["pid"], thread["tid"]
    process, number = (max(int(text), 0) if text else -1 for text in (pid, tid))
    return Header(comm, process, number, cpu, event["event"] if event else "", leaf)


def read_leaf(text: str) -> Frame | Unknown | None:
    """The frame behind an event, where other fields may stand before and behind it."""
    columns = [found for found in _COLUMN.finditer(text) if _is_column(found)]
    entry = read_frame(text[columns[-1].start() :]) if columns else None
    if entry is not None and (isinstance(entry, Unknown) or ")" not in entry.name):
        return entry
    if leaf := _LEAF.match(text):
        return read_frame(leaf["frame"])
    if not columns and _PERIOD.fullmatch(text):  # -F without the event
        return None
    return read_frame(text)


def read_frame(text: str) -> Frame | Unknown | None:
    """A line of a call chain: an address, then a name and a file if perf printed them."""
    frame_match = _FRAME.match(text)
    if frame_match is None or (frame_match["name"] or "").startswith(_INSTRUCTION):
        return None
    address = Address(int(frame_match["address"], 16))
    name = frame_match["name"] or ""
    module = _FILE_OFFSET.sub("", frame_match["module"] or "").removesuffix(_DELETED)
    is_kernel = address >= _KERNEL_HALF or module.startswith(
        ("[kernel", "[guest.kernel", "vmlinux")
    )
    kind = "kernel" if is_kernel else "user"
    if module.startswith("[kernel"):
        module = "kernel"
    if not name or name == _UNKNOWN:
        return Unknown(Reason.NOT_FOUND, "" if module == _UNKNOWN else module, address, kind)
    offset = 0
    if place := _OFFSET.match(name):
        name, offset = place["name"], int(place["offset"], 16)
    if module == _INLINED:  # the offset is in the function around it
        return Frame(name, 0, "", address, kind if is_kernel else _INLINED)
    return Frame(name, offset, "" if module == _UNKNOWN else module, address, kind)


def add_source_line(line: str, entry: Frame | Unknown) -> Frame | Unknown | None:
    """The frame with the place in the source that the line behind it gives; None: it gives none."""
    source = _SOURCE.match(line)
    if source is None:
        return entry if _NO_SOURCE.match(line) else None
    if isinstance(entry, Unknown):
        return entry
    if source["end"] == f" ({_INLINED})":
        kind = entry.kind if entry.kind == "kernel" else _INLINED
        entry = entry._replace(kind=kind, offset=0, module="")
    return entry._replace(file=source["file"], line=int(source["line"]))


def is_source_code(line: str) -> bool:
    """Return True for the text of a source line (-F srccode), and the bytes of an instruction."""
    return _CODE.match(line) is not None


def read_record(line: str) -> str | None:
    """The type of a record that is no sample, as --show-task-events and the like print it."""
    record = _RECORD.search(line)
    return record["type"] if record else None


def read_lost(line: str) -> int:
    """The samples that a PERF_RECORD_LOST counts."""
    lost = _LOST.search(line)
    return int(lost[1]) if lost else 0
