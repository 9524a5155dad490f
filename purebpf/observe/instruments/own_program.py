"""A user's own BPF program, which sees the samples of perf events and may drop them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf import objects
from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.closable import Closing
from purebpf.elf.reader import read_object
from purebpf.errors import KernelError, PurebpfError
from purebpf.loader.load.load import load
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import EventDescriptor
from purebpf.loader.programs.program import Program
from purebpf.observe.instruments import stack_maps
from purebpf.results.model.spelling import count_text

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.spec import ObjectSpec

__all__ = ["NoSuchProgramError", "OwnProgram"]

_FILTER, _OWN, _REST = range(3)
"""enum step of bpf_src/own_program.bpf.c."""


class NoSuchProgramError(PurebpfError):
    """A file without the program, or with several to choose from."""

    exit_status = 2


class OwnProgram(Closing):
    """A program `SEC("perf_event")` of an object file, loaded (x86-64: Linux 5.10, arm64: 6.0).

    A sample that it returns 0 for is dropped.

    Args:
        asked: `FILE`, or `FILE:NAME` if the object has several such programs.

    Attributes:
        name: of the program.
        object: the loaded object, with this program and all maps.

    Raises:
        NoSuchProgramError: the object has no such program.
        KernelError: the file cannot be read, or the kernel refused the object.
        FormatError: the file is not an object file.
    """

    def __init__(self, asked: str) -> None:
        spec, self.name = _choose(asked)
        with ExitStack() as stack:
            self.object: Object = stack.enter_context(load(spec.only(self.name)))
            self._owned = stack.pop_all()
        self._stages: list[Object] = []

    def attach(
        self,
        events: Iterable[EventDescriptor],
        *,
        first: Program | None = None,
        rest: Program | None = None,
    ) -> None:
        """Run the program on the samples of events, until this is closed; does not enable them.

        Args:
            events: they must not run a program yet.
            first: this program runs before, and ends a sample with 0.
            rest: this program runs after, for samples that were not dropped.

        Raises:
            AttachError: an event runs a program already, or takes none, as tracepoints.
        """
        loaded = self._owned.enter_context(load(objects.spec("own_program")))
        steps = loaded.maps["steps"]
        own = self.object.programs[self.name]
        for step, program in ((_FILTER, first), (_OWN, own), (_REST, rest)):
            if program is not None:
                steps[step] = program.fileno()
        self._stages.append(loaded)
        for event in events:
            self._owned.enter_context(loaded.programs["on_sample"].attach(event, enable=False))

    @property
    def outputs(self) -> tuple[Map, ...]:
        """The maps that the program can write records to with bpf_perf_event_output(2)."""
        kind = bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY
        used = set(self.object.programs[self.name].info.map_ids)
        return tuple(
            loaded
            for loaded in self.object.maps.values()
            if loaded.type == kind and loaded.info.id in used
        )

    def count_asked(self) -> int:
        """Return the number of samples that the program saw."""
        return sum(stack_maps.sum_up(loaded.maps["stats"])["asked"] for loaded in self._stages)

    def count_dropped(self) -> int:
        """Return the number of samples that the program dropped."""
        return sum(stack_maps.sum_up(loaded.maps["stats"])["dropped"] for loaded in self._stages)

    def describe(self, dropped: int) -> str:
        """Return a sentence about the program, for a command that does not read its records."""
        samples = count_text(self.count_asked(), "samples")
        text = f"program {self.name}: dropped {dropped} of {samples}"
        unread = " and ".join(output.name for output in self.outputs)
        return f"{text}; {unread}: only purebpf record reads these records" if unread else text

    def close(self) -> None:
        """Detach and unload it; again is harmless."""
        self._owned.close()


def _choose(asked: str) -> tuple[ObjectSpec, str]:
    """Return the object, and the name of the program."""
    path, _, name = (asked, "", "") if os.path.exists(asked) else asked.rpartition(":")
    try:
        spec = read_object(path or asked)
    except OSError as error:
        raise KernelError("open(2)", error.errno or 0, f"--program {path or asked}") from None
    kind = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
    names = [program.name for program in spec.programs.values() if program.type == kind]
    if name in names:
        return spec, name
    if len(names) == 1 and not name:
        return spec, names[0]
    if not names:
        raise NoSuchProgramError(
            f'{spec.source} has no program for samples: its section must be SEC("perf_event")'
        )
    problem = f"does not have the program {name!r}" if name else "has several programs for samples"
    choices = " or ".join(f"--program {path or asked}:{program_name}" for program_name in names)
    raise NoSuchProgramError(f"{spec.source} {problem}: use {choices}")
