"""Reading what `perf script` prints: a header line for each sample, then its frames, leaf first.

    app  4711/4712 [001] 15583.829040:    2004008 cpu-clock:u:
                1262 leaf+0x12 (/srv/app)
               27249 __libc_start_call_main+0x79 (/usr/lib/libc.so.6)

Which fields there are depends on its option -F; comm and pid or tid must be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from purebpf.errors import FormatError
from purebpf.results.model.profile import Labels, Profile, Stack
from purebpf.results.model.spelling import count_text
from purebpf.symbols.frame import Address, Frame, Reason, Unknown

__all__ = ["looks_like", "parse"]

_HEADER = re.compile(
    r"^(?P<comm>\S.{0,63}?) +(?:(?P<pid>-?\d{1,10})/)?(?P<tid>-?\d{1,10})(?= )"
    r"(?: +\[(?P<cpu>\d{1,10})\])?(?P<rest>.*)$",
    re.ASCII,
)
_EVENT = re.compile(r"(?:^|\s)(?:\d+ +)?(?P<event>[^\s\d:][^\s]*?):(?=\s|$)(?P<leaf>.*)$")
_TIME = re.compile(r"^ +\d+\.\d+: ?")
_FRAME = re.compile(r"^\s*(?P<address>[0-9a-f]{1,16}) +(?P<name>.*?)(?: +\((?P<module>[^()]*)\))?$")
_OFFSET = re.compile(r"^(?P<name>.+)\+0x(?P<offset>[0-9a-f]{1,16})$")
_KERNEL_HALF = 1 << 63
_INLINED = "inlined"
_UNKNOWN = "[unknown]"
_LINES = 64
"""How many lines of a text are looked at to tell what it is."""


def looks_like(text: str) -> bool:
    """Whether a text is that of perf script, and not folded stacks."""
    lines = text[: _LINES << 8].split("\n")[:_LINES]
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if first[:1].isspace() or not _HEADER.match(first):
        return False
    followed = lines[lines.index(first) + 1 :]
    has_frames = bool(followed) and followed[0][:1].isspace() and _FRAME.match(followed[0])
    return bool(has_frames or _EVENT.search(first))


def parse(lines: Iterable[str], source: str = "perf script") -> Profile:
    """The samples of the first event in the text; each counts 1.

    Others are named in `about["other_events"]`.

    Raises:
        FormatError: a line is neither a header nor a frame; `source` is what to call the text.
    """
    profile = Profile(f"perf script of {source}")
    reader = _Reader(profile, source)
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if not line.strip():
            reader.end()
        elif line.startswith("#"):
            continue
        elif line[0].isspace():
            reader.frame(line, number)
        else:
            reader.end()
            reader.header(line, number)
    reader.end()
    if reader.event:
        profile.about["event"] = reader.event
    if reader.others:
        others = [
            f"{name}: {count_text(count, 'samples')}" for name, count in reader.others.items()
        ]
        profile.about["other_events"] = others
    return profile


class _Reader:
    """The sample that is being read.

    Attributes:
        event: the first one, "" if the text has none.
        others: samples of other events.
    """

    def __init__(self, profile: Profile, source: str) -> None:
        self.event: str | None = None
        self.others: dict[str, int] = {}
        self._profile = profile
        self._source = source
        self._labels: Labels | None = None
        self._user: list[Frame | Unknown] = []
        self._kernel: list[Frame | Unknown] = []
        self._known: dict[str, Frame | Unknown] = {}
        self._stacks: dict[Stack, Stack] = {}

    def header(self, line: str, number: int) -> None:
        """The line that begins a sample."""
        header = _HEADER.match(line)
        if header is None:
            raise FormatError(self._source, f"line {number}", f"{line[:40]!r} is not a sample")
        tid = max(0, int(header["tid"]))
        pid = max(0, int(header["pid"])) if header["pid"] else tid
        cpu = int(header["cpu"]) if header["cpu"] else -1
        if max(pid, tid, cpu) >= 1 << 31:
            raise FormatError(self._source, f"line {number}", f"a number of {pid}, {tid}, {cpu}")
        rest = _TIME.sub(" ", header["rest"])
        event = _EVENT.search(rest)
        name = event["event"] if event else ""
        self.event = name if self.event is None else self.event
        if name != self.event:
            self.others[name] = self.others.get(name, 0) + 1
            return
        self._labels = Labels(header["comm"].strip(), pid, tid if header["pid"] else 0, cpu)
        leaf = event["leaf"].strip() if event else ""
        if leaf:  # perf script without call chains has it all in one line
            self.frame(leaf, number, must=False)

    def frame(self, line: str, number: int, *, must: bool = True) -> None:
        """A frame of it."""
        if self._labels is None:  # of another event
            return
        text = line.strip()
        entry = self._known.get(text)
        if entry is None:
            made = _entry(text)
            if made is None:
                if must:
                    problem = f"{line[:40]!r} is not a frame"
                    raise FormatError(self._source, f"line {number}", problem)
                return
            entry = self._known[text] = made
        (self._kernel if entry.kind == "kernel" else self._user).append(entry)

    def end(self) -> None:
        """Count it."""
        if self._labels is not None:
            user, kernel = self._same(tuple(self._user)), self._same(tuple(self._kernel))
            self._profile.add(user, kernel, 1, self._labels)
            self._labels = None
            self._user.clear()
            self._kernel.clear()

    def _same(self, stack: Stack) -> Stack:
        """One object for equal stacks."""
        return self._stacks.setdefault(stack, stack)


def _entry(text: str) -> Frame | Unknown | None:
    frame_match = _FRAME.match(text)
    if frame_match is None:
        return None
    address = Address(int(frame_match["address"], 16))
    name, module = frame_match["name"], frame_match["module"] or ""
    is_kernel = address >= _KERNEL_HALF or module.startswith(
        ("[kernel", "[guest.kernel", "vmlinux")
    )
    kind = "kernel" if is_kernel else "user"
    if module.startswith("[kernel"):
        module = "kernel"
    if not name or name == _UNKNOWN:
        return Unknown(Reason.NOT_FOUND, "" if module == _UNKNOWN else module, address, kind)
    if module == _INLINED:
        return Frame(name, 0, "", address, kind if is_kernel else _INLINED)
    offset = 0
    if place := _OFFSET.match(name):
        name, offset = place["name"], int(place["offset"], 16)
    return Frame(name, offset, "" if module == _UNKNOWN else module, address, kind)
