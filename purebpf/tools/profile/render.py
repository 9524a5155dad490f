"""The output of the profiler: the answer, or a format, and the number of samples. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from purebpf.results.model.spelling import count_text
from purebpf.results.model.width import fold

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.results import Profile

__all__ = ["render", "sample_lines"]

_FEW, _WIDTH = 50, 80
_IDLE_SHARE = 0.05
"""Of the CPUs: a machine that runs less, with few samples, is idle."""


def render(
    profile: Profile,
    view: ResultOptions,
    format_name: str,
    *,
    notes: Iterable[str] = (),
    parents: Sequence[str] = (),
) -> Iterable[str | bytes]:
    """The pieces of one output, without the title.

    Args:
        profile: samples of CPU time.
        view: the display.
        format_name: the format of the output.
        notes: lines above the table of a text.
        parents: commands whose children were sampled.
    """
    from purebpf.cli.destination import wants_answer

    wants_addresses = view.delimited or view.addresses
    if wants_answer(view, format_name, details=wants_addresses):
        from purebpf.cli.own_functions import describe_own, describe_programs
        from purebpf.results.formats import answer

        cpus = answer.cpus_of_sample(profile)
        idle = None if view.all_stacks else _describe_idle(profile, cpus)
        if idle is not None:
            return [idle]
        pieces = answer.pieces(
            profile,
            cpus=cpus,
            top=view.top,
            everything=view.all_stacks,
            whole_names=view.verbose,
        )
        above = (f"{fold(note, _WIDTH)}\n\n" for note in notes)
        programs = describe_programs(profile, parents) if _has_target(profile) else ()
        return chain(above, programs, describe_own(profile), pieces)
    from purebpf.results.formats import writer  # not before everything is measured

    style = writer.Style(view.delimited, view.annotations, view.addresses)
    return writer.write(profile, format_name, style)


def _has_target(profile: Profile) -> bool:
    """Return True if a target was chosen: of a whole machine, the programs are not one answer."""
    return bool(profile.about.get("filtered"))


def _describe_idle(profile: Profile, cpus: float) -> str | None:
    """Return a sentence in place of a table that only shows the noise of a machine that waits.

    None: there are enough samples; a target was chosen, which may be all that runs; the rate is not
    known.
    """
    about, total = profile.about, profile.total
    machine = about.get("cpus")
    if not cpus or not isinstance(machine, list) or total >= _FEW or about.get("filtered"):
        return None
    used = total * cpus
    if used >= _IDLE_SHARE * len(machine):
        return None
    samples = count_text(total, "samples")
    return (
        f"the machine is idle: {samples}, {used:.2f} of {count_text(len(machine), 'CPUs')}"
        " (the table: --all; threads that wait: purebpf offcpu)\n"
    )


def sample_lines(profile: Profile, whose: str) -> list[str]:
    """`789 of 792 samples, 257 in PID 14036 (0.64 CPUs); sampled by the CPU clock: ...`.

    Args:
        profile: of the profiler.
        whose: the target in words; "" where everything is.
    """
    from purebpf.results.formats.answer import cpus_of_sample

    about, loss = profile.about, profile.loss
    counted = about["counted"]
    own = about.get("own", 0)
    assert isinstance(counted, int)
    assert isinstance(own, int)
    counted -= own
    seen = count_text(loss.seen, "samples")
    if loss.expected is not None and about["event"] == "cpu-clock":
        # others, as cycles, stop while a CPU sleeps: how many are due is unknown
        seen = f"{loss.seen} of {count_text(loss.expected, 'samples')}"
    cpus = counted * cpus_of_sample(profile)
    used = f" ({cpus:.2f} CPUs)" if cpus else ""
    sampled = f"{counted} in {whose}{used}" if whose else f"{counted} not idle{used}"
    itself = f", {own} of purebpf itself ({own * cpus_of_sample(profile):.2f} CPUs)" if own else ""
    lines = [f"{seen}, {sampled}{itself}; {_event(about)}"]
    if about.get("program"):
        lines.append(str(about["program"]))
    ended = about.get("ended")
    if isinstance(ended, list):
        which = f"PID{'s' if len(ended) > 1 else ''} {', '.join(map(str, ended))}"
        lines.append(f"{which} ended after {about['elapsed_s']} s")
    if not counted and about.get("without_gil"):
        lines.append(f"no samples: in none of {about['without_gil']} did a thread hold the GIL")
    elif not counted and not about.get("program"):
        lines.append(
            "no samples: the target did not run on a CPU during the run. Where it waited: purebpf "
            "offcpu"
        )
    return lines


def _event(about: dict[str, object]) -> str:
    if about["event"] != "cpu-clock":
        return f"sampled by {about['event']}"
    if "event_asked" in about:
        return "sampled by the CPU clock: no hardware counters here"
    return "sampled by the CPU clock"
