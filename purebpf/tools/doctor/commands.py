"""The commands of purebpf that would run here.

The object that a command loads shows its needs: the types of its maps, and for each of its programs
the type and the way to attach. Objects hold alternatives; a command picks the ones that the
kernel has: a missing program type blocks only when no other program of its kind can run.
"""

from __future__ import annotations

from collections.abc import Iterator

from purebpf import objects
from purebpf.commands import COMMANDS
from purebpf.loader.features import features
from purebpf.loader.features.attach_features import KINDS
from purebpf.loader.host.privilege import advice, read_host
from purebpf.spec import ObjectSpec, ProgramSpec

__all__ = ["obstacles"]


_LOADS = {
    "cpudist": "spans",
    "dump": "task_registers",
    "runqlat": "spans",
    "setup": "filter_pinned",
    "top": "profile",
    "triage": "offcpu",
    "types": "sampleip",
    "wall": "offcpu",
}
"""The objects of commands that load one of another name."""


def obstacles() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command with the obstacles that keep it from running."""
    for name in COMMANDS:
        try:
            spec = objects.spec(_LOADS.get(name, name))
        except OSError:  # it loads nothing
            yield name, ()
            continue
        reasons = tuple(_of(spec))
        yield (
            name,
            _without_privilege() if any("EPERM" in reason for reason in reasons) else reasons,
        )


def _without_privilege() -> tuple[str, ...]:
    """The reason behind all the refusals, once."""
    why, _ = advice(read_host(), "CAP_BPF", "CAP_PERFMON")
    return (why, "run it as root")


def _of(spec: ObjectSpec) -> Iterator[str]:
    for map_type in sorted({map_spec.type for map_spec in spec.maps.values()}):
        if not (feature := features.have_map_type(map_type)):
            yield str(feature)
    answers = [
        answer for program in spec.programs.values() if (answer := _answer(program)) is not None
    ]
    if answers and not any(answers):
        yield from dict.fromkeys(map(str, answers))


def _answer(program: ProgramSpec) -> features.Feature | None:
    """Return True if a program could be loaded and attached; None for a program that purebpf
    never attaches.
    """
    if program.definition is None:
        return None
    loads = features.have_program_type(program.type)
    kind = program.definition.prefix.removesuffix(".s")
    return features.have_attach(kind) if loads and kind in KINDS else loads
