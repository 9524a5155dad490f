"""The data that the samples of a perf.data file touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.abi.perf import PERF_EVENT_ATTR, perf_sw_ids, perf_type_id
from purebpf.observe.saved.perf_data_loader import build_ids_of, choose_event, lost_of, opened
from purebpf.results.build.perf_data_aggregate import count
from purebpf.tools.types.attribute import DataOfPrograms
from purebpf.tools.types.result import DataTypes, Tally

if TYPE_CHECKING:
    from purebpf.loader.host.debug_files import Fetch
    from purebpf.wire.callchain import Stacks

__all__ = ["read"]

_EXACT = 2
"""The least `precise_ip` without skid (perf_event_open(2)); 1 is a constant skid of one."""

_FAULTS = (
    perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS,
    perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS_MIN,
    perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS_MAJ,
)


def read(path: str, event: str | None = None, fetch: Fetch | None = None) -> DataTypes:
    """Return the data that the samples of a file touch.

    The programs must be on this machine as they were: files of another build id are not read.

    Args:
        path: a perf.data file, of purebpf or of perf; "-": standard input.
        event: the event; None: the first that has samples.
        fetch: downloads missing debug files.

    Raises:
        KernelError: it cannot be read.
        FormatError, NotSupportedError: it is not a perf.data file that purebpf can read.
        NoSuchEventError: it has no event of that name.
    """
    with opened(path) as file:
        build_ids = build_ids_of(file)
        periods = [False] * len(file.events)
        counted = count(file, build_ids, periods=periods, slots=False, unwind={})
        number = choose_event(file, counted, event)
        recorded = file.events[number]
    is_precise = points_at_cause(recorded.attr)
    tally = Tally()
    with DataOfPrograms(counted.spaces, is_precise=is_precise, fetch=fetch) as data:
        for (owner, stacks), samples in counted.found[number].items():
            address = _sampled(stacks)
            answer = data.find(owner.pid, address)
            tally.add(answer.claim, answer.function or "[unknown]", int(samples))
    return tally.finish(recorded.name, lost_of(counted, number), is_precise=is_precise)


def points_at_cause(attr: bytes) -> bool:
    """Return True if the samples of an event point at the instruction that caused them.

    A page fault does, as its instruction runs again. A software clock never does, although perf
    opens it with `precise_ip` 3.
    """
    fields = PERF_EVENT_ATTR.unpack(attr)
    if fields["type"] == perf_type_id.PERF_TYPE_SOFTWARE:
        return fields["config"] in _FAULTS
    return int(fields["precise_ip"]) >= _EXACT


def _sampled(stacks: Stacks) -> int:
    """Return the sampled address; 0 where a sample has none."""
    return next(iter((*stacks.kernel, *stacks.user)), 0)
