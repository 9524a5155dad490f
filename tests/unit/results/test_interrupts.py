"""Wake-ups by interrupts are theirs, and not those of the thread that was stopped."""

from __future__ import annotations

import pytest

from purebpf.results import Profile
from purebpf.results.build.interrupts import INTERRUPT, interrupt_part
from purebpf.results.build.offcpu_rows import Place, Span, SpanWaker, fill
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.formats import text
from purebpf.symbols.frame import Address, Frame

TIMER = (
    *("hrtimer_wakeup", "hrtimer_interrupt", "sysvec_apic_timer_interrupt"),
    "asm_sysvec_apic_timer_interrupt",
)
DISK = (
    "blk_done_softirq",
    "handle_softirqs",
    "__irq_exit_rcu",
    "common_interrupt",
    "asm_common_interrupt",
)
READING = ("vfs_read", "do_syscall_64", "entry_SYSCALL_64_after_hwframe")
SENDING = (
    "tcp_v4_rcv",
    "handle_softirqs",
    "do_softirq.part.0",
    "__local_bh_enable_ip",
    "tcp_sendmsg",
)
WAY_BACK = ("task_work_run", "irqentry_exit_to_user_mode", "asm_sysvec_apic_timer_interrupt")
ARM = ("hrtimer_wakeup", "gic_handle_irq", "el1_interrupt", "el1h_64_irq")


def stack(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name, 0, "kernel", Address(1), "kernel") for name in names)


@pytest.mark.parametrize("interrupt", [TIMER, DISK, ARM])
@pytest.mark.parametrize("victim", [(), READING, SENDING, WAY_BACK])
def test_it_ends_at_its_entry(interrupt: tuple[str, ...], victim: tuple[str, ...]) -> None:
    assert interrupt_part(stack(*interrupt, *victim)) == stack(*interrupt)


@pytest.mark.parametrize("thread", [READING, SENDING, WAY_BACK, ()])
def test_what_a_thread_does_itself_is_none(thread: tuple[str, ...]) -> None:
    assert interrupt_part(stack(*thread)) is None


class Names:
    def __init__(self, stacks: dict[int, tuple[str, ...]]) -> None:
        self._stacks = stacks

    def kernel_stack(self, addresses: tuple[int, ...]) -> tuple[Frame, ...]:
        return stack(*self._stacks[addresses[0]])

    def user_stack(self, pid: int, addresses: tuple[int, ...], comm: str = "") -> tuple[Frame, ...]:
        return (Frame("victim_code", 0, "app", Address(1), "user"),)


def test_waits_that_the_same_interrupt_ended_are_one_row() -> None:
    known = {16: (*TIMER, *READING), 17: (*TIMER, *SENDING), 18: READING, 19: ("victim",)}
    stacks = Stacks({number: (number,) for number in known}, Names(known))
    place = Place("sleeper", 7, 7, "S", 0, 18)
    spans = {
        place._replace(waker=SpanWaker("ruff", 9, 9, 19, 16)): Span(2, 1_000_000, 0),
        place._replace(waker=SpanWaker("gcc", 10, 10, 19, 17)): Span(3, 2_000_000, 0),
        place._replace(waker=SpanWaker("other", 11, 11, 19, 18)): Span(1, 4_000_000, 0),
    }
    profile = Profile(unit="ns")
    fill(profile, spans, stacks, lambda _: "", is_split=True)
    by_interrupt, by_thread = profile.rows()
    waker = by_interrupt.marks.waker
    assert waker
    assert (waker.comm, waker.pid, waker.tid, waker.user) == (INTERRUPT, 0, 0, ())
    assert waker.kernel == stack(*TIMER)
    assert (by_interrupt.weight, by_interrupt.marks.times) == (3_000_000, 5)
    assert by_thread.marks.waker
    assert by_thread.marks.waker.comm == "other"
    shown = "".join(text.blocks(profile, scale=1000))
    assert "    woken by         [interrupt]\n    hrtimer_wakeup" in shown
    assert "ruff" not in shown
