"""A service's part of a window as a pprof file. Pure."""

from __future__ import annotations

from purebpf.results import Labels, Profile
from purebpf.results.formats import pprof
from purebpf.results.formats.otlp import Entry
from purebpf.results.formats.otlp_reader import ServiceProfile
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

__all__ = ["pprof_of"]


def pprof_of(service: ServiceProfile) -> bytes:
    """The file, gzipped."""
    window, series = service
    is_cpu = bool(window.period_ns)
    about: dict[str, object] = {
        "started_s": window.started_ns / 1e9,
        "elapsed_s": window.duration_ns / 1e9,
    }
    if is_cpu:  # pprof's period is that of a clock
        about |= {"event": "cpu-clock", "period": window.period_ns}
    profile = Profile(
        str(dict(series.resource).get("service.name", "")),
        unit="samples" if is_cpu else "ns",
        about=about,
    )
    frames: dict[Entry, Frame | Unknown] = {}
    for (comm, stack), value in series.samples.items():
        for entry in stack:
            if entry not in frames:
                frames[entry] = _frame(entry)
        profile.add(tuple([frames[entry] for entry in stack]), (), value, Labels(comm))
    return pprof.document(profile)


def _frame(entry: Entry) -> Frame | Unknown:
    offset = FileOffset(entry.file_offset)
    if entry.name:
        return Frame(entry.name, 0, entry.module, Address(0), entry.kind)
    reason = Reason.STRIPPED
    return Unknown(reason, entry.module, Address(0), entry.kind, "", entry.build_id, offset)
