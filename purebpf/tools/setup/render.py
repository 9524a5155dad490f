"""The output of `purebpf setup`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.observe.filters.filter_preflight import Check, Preflight
from purebpf.observe.filters.pinned_slots import pin_command
from purebpf.results.model.spelling import printable
from purebpf.tools.setup.session import Done, Status

__all__ = ["render_pinned", "render_status", "render_unpinned"]

_WIDTH = 80


def render_pinned(done: Sequence[Done]) -> Iterator[str]:
    """A line for each user."""
    for user, folder, slots, _ in done:
        yield f"{user} has {_slots(slots)} in {folder}\n"


def render_unpinned(done: Sequence[Done]) -> Iterator[str]:
    """Yield a line for each user; failures are for `problems`."""
    for user, folder, slots, problem in done:
        if not problem:
            yield f"{user} had {_slots(slots)} in {folder}\n" if slots else f"{user} had none\n"
    if not done:
        yield "no user had any\n"


def render_status(status: Status) -> Iterator[str]:
    """Yield the verdict, each condition, the advice, and the slots."""
    own = status.preflight
    yield f"filters of {status.user} (uid {own.uid}) run {_place(own)}\n"
    for check in own.checks:
        yield from _check(check)
    yield from (f"\n{_wrap(problem)}" for problem in status.problems)
    if not status.slots:
        return
    width = max(4, *(len(user) for user, _ in status.slots))
    yield f"\n{'USER':{width}}  SLOT  STATE   {'PID':>7}  COMMAND\n"
    for user, slot in status.slots:
        state = "broken" if slot.faults else "taken" if slot.taken else "free"
        pid = str(slot.pid) if slot.taken else ""
        comm = printable(slot.command)
        line = f"{user:{width}}  {slot.number:4}  {state:6}  {pid:>7}  {comm}"
        yield line.rstrip() + "\n"
    yield from _faults(status)


def _faults(status: Status) -> Iterator[str]:
    """Yield the faults of broken slots, and the commands that repair them."""
    broken = [(user, slot) for user, slot in status.slots if slot.faults]
    for user, slot in broken:
        yield f"\n{_wrap(f'{user}, slot {slot.number}: ' + '; '.join(slot.faults))}"
    for uid in dict.fromkeys(slot.uid for _, slot in broken):
        count = sum(slot.uid == uid for _, slot in status.slots)
        yield f"repair: {pin_command(uid, count, status.bpffs)}\n"


def _wrap(text: str) -> str:
    import textwrap

    safe = printable(text)
    return textwrap.fill(safe, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _check(check: Check) -> Iterator[str]:
    """Yield the finding, wrapped, and the command as it is, to be copied."""
    import textwrap

    head = f"  {'ok' if check.holds else 'no':4}{check.name:17}"
    blank = " " * len(head)
    text = textwrap.fill(
        check.found, _WIDTH, initial_indent=head, subsequent_indent=blank, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    yield f"{text}\n"
    if check.fix:
        yield f"{blank}{check.fix}\n"


def _place(own: Preflight) -> str:
    if not own.checks[0].holds:
        return "nowhere: this user cannot open events"
    if own.loads:
        return "in the kernel, each with its own program"
    if own.uses_pins:
        return "in the kernel, with programs that root pinned"
    return "in user space only"


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"
