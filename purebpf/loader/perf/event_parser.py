"""Events as perf(1) users spell them: names with modifiers, and sysfs events by their terms.

    cycles:u    page-faults    L1-dcache-load-misses:k    r01c2    sched:sched_switch
    cpu/event=0x3c,umask=0x1/pp    msr/tsc/    software/config=0,period=1000/
    mem:0x404040    mem:0x404040/8:w:u

A modifier is a letter: `u`, `k`, `h` count in user space, in the kernel, in the hypervisor only;
each `p` asks for a more precise place; `I` leaves out idle CPUs. sysfs has the names of a
performance unit's terms (Documentation/ABI/testing/sysfs-bus-event_source-devices-format). `mem:`
is a breakpoint of the processor: an address, how many bytes from there on (4), and whether reading,
writing (both) or executing counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from purebpf.abi.perf import perf_type_id
from purebpf.errors import KernelError, PurebpfError
from purebpf.late_pattern import compile_later
from purebpf.loader.perf.perf_names import Event, event_named, known_names
from purebpf.syscall import pmu, tracefs
from purebpf.tuples import NamedTuple

__all__ = ["Choice", "EventError", "choose_event", "split"]

_SPACES = {"u": "exclude_user", "k": "exclude_kernel", "h": "exclude_hv"}
_MOST_PRECISE = 3
_CONFIGS = ("config", "config1", "config2", "config3")
_BITS = compile_later(r"(config[123]?):([0-9,-]+)")
_BREAKPOINT = compile_later(
    r"mem:(?P<address>0[xX][0-9a-fA-F]+|\d+)(?:/(?P<size>[1248]))?(?::(?P<access>x|rw?|w))?"
    r"(?::(?P<modifiers>[ukhpI]+))?"
)
_MEMORY = "mem:"
_ACCESS = {"r": 1, "w": 2, "rw": 3, "x": 4}
"""HW_BREAKPOINT_* of include/uapi/linux/hw_breakpoint.h."""
_DATA_SIZE, _CODE_SIZE = 4, 8
_U64 = (1 << 64) - 1
_NEAREST = 3


class EventError(PurebpfError):
    """An event that this machine does not know, or a syntax error."""

    exit_status = 2


class Choice(NamedTuple):
    """An event and the fields of struct perf_event_attr that its spelling asks for.

    `sample_period`, and `sample_freq` with `freq`, are among them when a term says so.
    """

    event: Event
    attr: dict[str, int]

    @property
    def is_tracepoint(self) -> bool:
        """True if it is a place in the kernel's code instead of a count."""
        return self.event.type == perf_type_id.PERF_TYPE_TRACEPOINT


def split(text: str) -> list[str]:
    """The events of a list: commas between slashes are a performance unit's own."""
    parts = [""]
    inside = False
    for char in text:
        inside ^= char == "/" and not parts[-1].startswith(_MEMORY)
        if char == "," and not inside:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def choose_event(text: str) -> Choice:
    """One event.

    Raises:
        EventError: there is no such event; the text has the nearest names.
        KernelError, NotSupportedError: tracefs or sysfs may not be read.
    """
    if not text:
        raise EventError("an event without a name: is there a comma too many?")
    if "{" in text or "}" in text:
        raise EventError(f"event {text!r}: groups are not supported; name the events one by one")
    if text.startswith(_MEMORY):
        return _breakpoint(text)
    if "/" in text:
        return _of_unit(text)
    head, colon, modifiers = text.partition(":")
    if head in known_names() or _is_raw(head):
        event = event_named(head)
        return Choice(event._replace(name=text), _apply_modifiers(text, modifiers) if colon else {})
    if not colon:
        raise EventError(f"unknown event {text!r}{_nearest(text, known_names())}")
    name, _, modifiers = modifiers.partition(":")
    return _tracepoint(text, head, name, modifiers)


def _is_raw(name: str) -> bool:
    return re.fullmatch(r"r[0-9a-fA-F]{1,16}", name) is not None


def _tracepoint(text: str, category: str, name: str, modifiers: str) -> Choice:
    try:
        number = tracefs.tracepoint_id(category, name)
    except KernelError as error:
        if error.errno not in (2, 20):  # ENOENT, ENOTDIR
            raise
        names = tracefs.tracepoint_names()
        raise EventError(
            f"unknown tracepoint {category}:{name}{_nearest(f'{category}:{name}', names)}"
        ) from None
    event = Event(text, perf_type_id.PERF_TYPE_TRACEPOINT, number)
    return Choice(event, _apply_modifiers(text, modifiers))


def _breakpoint(text: str) -> Choice:
    match = _BREAKPOINT.fullmatch(text)
    if match is None:
        raise EventError(
            f"event {text!r}: expected mem:ADDRESS[/BYTES][:ACCESS], as mem:0x404040/8:w "
            "(1, 2, 4 or 8 bytes; r, w, rw or x)"
        )
    access = match["access"] or "rw"
    fields = {
        "bp_type": _ACCESS[access],
        "bp_addr": _number(text, "address", match["address"]),
        "bp_len": int(match["size"] or (_CODE_SIZE if access == "x" else _DATA_SIZE)),
    }
    event = Event(text, perf_type_id.PERF_TYPE_BREAKPOINT, 0)
    return Choice(event, fields | _apply_modifiers(text, match["modifiers"] or ""))


def _apply_modifiers(text: str, modifiers: str) -> dict[str, int]:
    """The attr fields of modifiers."""
    wrong = set(modifiers) - {"u", "k", "h", "p", "I"}
    if wrong:
        raise EventError(f"event {text!r}: unknown modifier {min(wrong)!r}; known: u k h p I")
    fields: dict[str, int] = {}
    spaces = set(modifiers) & set(_SPACES)
    if spaces:
        fields |= {field: 1 for space, field in _SPACES.items() if space not in spaces}
    precise = modifiers.count("p")
    if precise > _MOST_PRECISE:
        raise EventError(f"event {text!r}: at most {_MOST_PRECISE} p")
    if precise:
        fields["precise_ip"] = precise
    if "I" in modifiers:
        fields["exclude_idle"] = 1
    return fields


def _of_unit(text: str) -> Choice:
    """`unit/term=value,.../modifiers`."""
    unit, _, rest = text.partition("/")
    terms, slash, modifiers = rest.rpartition("/")
    if not slash:
        raise EventError(f"event {text!r}: the closing / is missing")
    number = pmu.attribute(unit, "type") if re.fullmatch(r"[\w.-]+", unit) else None
    if number is None:
        raise EventError(f"unknown PMU {unit!r}{_nearest(unit, _units())}")
    fields: dict[str, int] = {}
    name = _apply(text, unit, terms, fields, named=True) or text
    config = fields.pop("config", 0)
    return Choice(Event(name, int(number), config), fields | _apply_modifiers(text, modifiers))


def _apply(text: str, unit: str, terms: str, fields: dict[str, int], *, named: bool) -> str:
    """Put the terms into the fields; the name that a term gives the event, or ""."""
    name = ""
    for term in filter(None, terms.split(",")):
        key, equals, value = (part.strip() for part in term.partition("="))
        if key == "name" and named:
            name = value
        elif key in ("period", "freq"):
            fields["sample_period"] = _number(text, key, value)
            fields["freq"] = int(key == "freq")
        elif key in _CONFIGS:
            fields[key] = _number(text, key, value)
        elif (form := pmu.attribute(unit, f"format/{key}")) is not None:
            _place(text, key, form, _number(text, key, value) if equals else 1, fields)
        elif not equals and named and (meaning := pmu.attribute(unit, f"events/{key}")) is not None:
            _apply(text, unit, meaning, fields, named=False)
        else:
            names = [*_list_events(unit, "format"), *_list_events(unit, "events"), *_CONFIGS]
            raise EventError(
                f"event {text!r}: {unit} does not have a term {key!r}{_nearest(key, names)}"
            )
    return name


def _place(text: str, key: str, form: str, value: int, fields: dict[str, int]) -> None:
    """Spread a value over the bits that sysfs names: `config:0-7,32-35`."""
    match = _BITS.fullmatch(form)
    if match is None:
        raise EventError(
            f"event {text!r}: cannot parse the format that sysfs gives for {key}: {form!r}"
        )
    field, left = match[1], value
    for part in match[2].split(","):
        first, dash, last = part.partition("-")
        width = int(last) - int(first) + 1 if dash else 1
        fields[field] = fields.get(field, 0) | (left & (1 << width) - 1) << int(first)
        left >>= width
    if left:
        raise EventError(f"event {text!r}: {value:#x} does not fit {key} ({form})")


def _number(text: str, key: str, value: str) -> int:
    try:
        number = int(value, 0)
    except ValueError:
        raise EventError(f"event {text!r}: {key}={value} is not a number") from None
    if not 0 <= number <= _U64:
        raise EventError(f"event {text!r}: {key}={value} does not fit in 64 bits")
    return number


def _units() -> list[str]:
    return _list(pmu.path(""))


def _list_events(unit: str, directory: str) -> list[str]:
    return _list(f"{pmu.path(unit)}/{directory}")


def _list(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return a sentence about similar names."""
    import difflib  # 3 ms for those who misspell

    close = difflib.get_close_matches(name, list(names), n=_NEAREST)
    return f"; did you mean {' or '.join(close)}?" if close else "; list events with: perf list"
