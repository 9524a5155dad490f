"""A window of the agent (`purebpf.results.formats.otlp`) as a profile like any other."""

from __future__ import annotations

from purebpf.errors import FormatError
from purebpf.results.formats.otlp import Attribute, Entry
from purebpf.results.formats.otlp_reader import ServiceProfile, read_document
from purebpf.results.formats.protobuf import ProtobufError, each_field
from purebpf.results.model.loss import Loss, count_cause
from purebpf.results.model.profile import Labels, Profile, Row, Stack
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

__all__ = ["looks_like", "parse"]

_PREFIX = "purebpf."
_LOST = f"{_PREFIX}lost."
_TITLES = {
    "samples": "CPU time",
    "off_cpu": "off-CPU time",
    "run_queue": "time in the run queue",
}
_TOP_FIELDS = {1, 2}
"""Of ExportProfilesServiceRequest: the profiles of services, and the dictionary."""


def looks_like(data: bytes) -> bool:
    """Return True if bytes may be such a window: a message with these two fields, and no other."""
    if data[:1] not in (b"\x0a", b"\x12"):
        return False
    try:
        return {number for number, _ in each_field(data)} == _TOP_FIELDS
    except ProtobufError:
        return False


def parse(data: bytes, source: str = "profile") -> Profile:
    """Return the samples of all services; the name of a service replaces the process's.

    Raises:
        FormatError: it is another message, or has nothing of a service; `source` names the file.
    """
    services = read_document(data, source)
    if not services:
        raise FormatError(source, "OTLP profiles", "there is none in it")
    window = services[0].window
    if any(service.window.type != window.type for service in services):
        raise FormatError(source, "OTLP profiles", "profiles of several types in one file")
    facts = dict(window.facts)
    resource = dict(services[0].series.resource)
    what = _TITLES.get(window.type, window.type)
    seconds = window.duration_ns / 1e9
    profile = Profile(
        f"{what} of {resource.get('host.name', 'a host')} in {seconds:.1f} s, by service",
        unit="ns" if window.unit == "nanoseconds" else "samples",
        about={
            "elapsed_s": seconds,
            "started_unix_ns": window.started_ns,
            "period_ns": window.period_ns,
            **{name.removeprefix(_PREFIX): value for name, value in window.facts},
        },
        loss=_loss(facts),
    )
    for service in services:
        _add(profile, service)
    return profile


def _loss(facts: dict[str, str | int]) -> Loss:
    lost = {name: value for name, value in facts.items() if name.startswith(_LOST)}
    causes = [
        count_cause(name.removeprefix(_LOST), value, f"as the agent counted under {name}")
        for name, value in lost.items()
        if isinstance(value, int)
    ]
    seen = facts.get(f"{_PREFIX}seen", 0)
    return Loss(seen=seen if isinstance(seen, int) else 0, causes=tuple(causes))


def _add(profile: Profile, service: ServiceProfile) -> None:
    name = _text(service.series.resource, "service.name")
    cgroup = _text(service.series.resource, "container.id")
    stacks: dict[tuple[Entry, ...], tuple[Stack, Stack]] = {}
    for sample, value in service.series.samples.items():
        split = stacks.get(sample.stack)
        if split is None:
            split = stacks[sample.stack] = _split(sample.stack)
        kernel, user = split
        labels = Labels(sample.comm, cgroup=cgroup, process=name)
        profile.add_row(Row(user, kernel, value, labels))


def _text(resource: tuple[Attribute, ...], name: str) -> str:
    return str(dict(resource).get(name, ""))


def _split(stack: tuple[Entry, ...]) -> tuple[Stack, Stack]:
    """Return the part of the kernel, whose frames come first, and the part of user space."""
    depth = next((at for at, entry in enumerate(stack) if entry.kind != "kernel"), len(stack))
    frames = [*map(_frame, stack)]
    return tuple(frames[:depth]), tuple(frames[depth:])


def _frame(entry: Entry) -> Frame | Unknown:
    offset = FileOffset(entry.file_offset)
    if entry.name:
        return Frame(entry.name, 0, entry.module, Address(0), entry.kind, entry.build_id, offset)
    return Unknown(
        Reason.NO_FUNCTION, entry.module, Address(0), entry.kind, "", entry.build_id, offset
    )
