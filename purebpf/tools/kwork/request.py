"""The kernel's work to measure, for a command line or a program. Pure."""

from __future__ import annotations

from purebpf.measure.options import RunOptions

__all__ = ["KINDS", "PROGRAMS", "KworkOptions"]

KINDS = ("irq", "softirq", "tasklet", "work", "hrtimer", "timer", "ipi")
"""enum kind of bpf_src/kwork.bpf.c."""

PROGRAMS = {
    "irq": ("on_irq_exit", "on_irq_entry"),
    "softirq": ("on_softirq_exit", "on_softirq_entry", "on_softirq_raise"),
    "tasklet": ("on_tasklet_exit", "on_tasklet_entry"),
    "work": ("on_work_end", "on_work_start", "on_queue_work"),
    "hrtimer": ("on_hrtimer_exit", "on_hrtimer_entry"),
    "timer": ("on_timer_exit", "on_timer_entry"),
    "ipi": ("on_call_exit", "on_call_entry", "on_call_queued"),
}
"""What measures a kind: what sees the ends first, so that each run that begins has an end."""


class KworkOptions(RunOptions):
    """The work to measure. Empty tuples and None mean: no restriction.

    `kinds` are some of KINDS; () is all that this kernel has. `names` are patterns as the shell has
    them, of handlers and functions. `by_cpu`: rows of each CPU, not their sum. `stacks`: a row for
    each stack that queued the work. `each_run`: for `Kwork.runs()`. `shares`: the time of each CPU
    and task, too. `rows` is how many there is room for on each CPU. `interval_s` None: one result,
    at the end. `duration_s` None: until a signal, or until `command` ends.
    """

    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    by_cpu: bool = False
    stacks: bool = False
    each_run: bool = False
    shares: bool = False
    rows: int = 512
    interval_s: float | None = None
