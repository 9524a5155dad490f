"""The ends of a file's call chains: as recorded, or as the kernel's walk leaves them open."""

from __future__ import annotations

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.results.build.perf_data_aggregate import Unwind
from purebpf.results.model.stack_end import reason_in_path
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.unwind.reason import Reason
from purebpf.wire.callchain import Stacks, stacks
from purebpf.wire.deferred_chains import PERF_CONTEXT_USER_DEFERRED
from purebpf.wire.perf_encode import MISC_USER
from purebpf.wire.perf_records import Sample

__all__ = ["chain_method"]


def chain_method(sample_type: int, *, is_ours: bool) -> Unwind | None:
    """Return how the stacks of an event's samples follow from their call chains.

    Args:
        sample_type: `attr.sample_type` of the event.
        is_ours: True if a profile was written as this event: `purebpf.results.formats.perf_data`
            marks stacks that are cut there.

    Returns:
        the method; None where samples have an address only.
    """
    if not sample_type & bit.PERF_SAMPLE_CALLCHAIN:
        return None
    return _marked_chain if is_ours else _kernel_chain


def _kernel_chain(sample: Sample, _spaces: AddressSpaces) -> Stacks:
    """The kernel followed frame pointers (perf_callchain_user), to wherever they led."""
    chains = stacks(sample)
    if PERF_CONTEXT_USER_DEFERRED in sample.callchain[-2:]:  # the record that has it is missing
        leaf = (sample.ip,) if sample.misc & 7 == MISC_USER else ()
        return chains._replace(user=leaf, reason=int(Reason.COPY_LOST))
    return chains._replace(reason=int(Reason.FRAME_POINTERS)) if chains.user else chains


def _marked_chain(sample: Sample, spaces: AddressSpaces) -> Stacks:
    chains = stacks(sample)
    mapping = spaces.find_current(sample.pid, chains.user[-1]) if chains.user else None
    reason = None if mapping is None else reason_in_path(mapping.file.path)
    if reason is None:
        return chains
    return chains._replace(user=chains.user[:-1], reason=int(reason))
