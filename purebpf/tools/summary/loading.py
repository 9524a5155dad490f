"""Picks programs that this kernel loads: BTF tracepoints, else raw ones, else plain ones.

Where the first two can be preempted, plain ones come first: theirs is the exact count.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NoReturn, SupportsIndex

from purebpf import objects
from purebpf.abi import syscalls
from purebpf.closable import refuse_copy
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.load.load import load
from purebpf.loader.load.object import Object
from purebpf.loader.types.kernel_btf import no_types
from purebpf.observe.instruments.preemption import syscall_programs_are_preempted
from purebpf.observe.instruments.sched_compat import adapt, without_task_storage
from purebpf.observe.instruments.task_filter import TaskFilter
from purebpf.spec import ObjectSpec
from purebpf.syscall import tracefs
from purebpf.tools.summary import thread_info_abi
from purebpf.tuples import NamedTuple

__all__ = ["HOOKS", "ITERATOR", "Loaded", "load_best"]

ITERATOR = "list_open_calls"
_FOLLOWERS = ("tp_fork", "tp_exec", "tp_exit")
HOOKS = {
    "tp_btf": (
        *("btf_fork", "btf_exec", "btf_exit", "btf_switch"),
        *("btf_sys_enter", "btf_sys_exit"),
    ),
    "raw_tp": (*_FOLLOWERS, "raw_sys_enter", "raw_sys_exit"),
    "tracepoint": (*_FOLLOWERS, "tp_sys_enter", "tp_sys_exit"),
}
"""The programs of each way to attach, in the order of attaching: the best way first."""

_NUMBER_OFFSETS = {"x86_64": 120, "aarch64": 280}
"""Where struct pt_regs has the number of the call, in bytes: arch/*/include/asm/ptrace.h."""

_HOST = (errno.EPERM, errno.EACCES, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Refusals that have nothing to do with the way to attach."""


class Loaded(NamedTuple):
    """The programs in the kernel, attached and waiting for `phase`.

    `links` closes the links, each of them. `why_not` says why a better way to attach was refused,
    "" for the best. `abis_known`: 32-bit calls are counted apart from 64-bit ones.
    """

    object: Object
    links: ExitStack
    hook: str
    why_not: str
    abis_known: bool

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        refuse_copy(self, protocol)

    @property
    def has_generations(self) -> bool:
        """True if a group's number contains the start of its thread or process."""
        return self.hook == "tp_btf"

    def close(self) -> None:
        """Detach and unload; again is harmless."""
        with self.object:
            self.links.close()


def load_best(
    settings: Mapping[str, Any],
    sizes: Mapping[str, int],
    whose: TaskFilter,
    hook: str | None = None,
) -> Loaded:
    """Load and attach the best variant, or only `hook`.

    Args:
        settings: constants of bpf_src/summary.bpf.c.
        sizes: max_entries of its maps.
        whose: the target; the caller calls its `fill`.
        hook: a key of HOOKS.

    Raises:
        KernelError: the kernel refused every one, or this process, or has no memory.
        NotSupportedError: the requested hook needs a feature that this kernel lacks.
    """
    why_not = ""
    ways = (hook,) if hook else _ways()
    for way in ways:
        try:
            return _load(way, settings, sizes, whose, why_not)
        except (NotSupportedError, KernelError) as error:
            if way == ways[-1] or getattr(error, "errno", 0) in _HOST:
                raise
            why_not = why_not or str(error)
    raise AssertionError("there is always a last way")


def _ways() -> tuple[str, ...]:
    """The best one first: the only exact one, or the one that costs least."""
    if syscall_programs_are_preempted():
        return ("tracepoint", *(way for way in HOOKS if way != "tracepoint"))
    return tuple(HOOKS)


def _load(
    way: str, settings: Mapping[str, Any], sizes: Mapping[str, int], whose: TaskFilter, why: str
) -> Loaded:
    machine = syscalls.machine(os.uname().machine)
    offset = thread_info_abi.word_offset()
    is_typed = offset != thread_info_abi.UNKNOWN
    spec = whose.apply(_spec(way, is_typed=is_typed))
    spec = spec.set(**settings, **_machine_settings(machine), compat_offset=offset)
    with ExitStack() as undo:
        types = None if is_typed else no_types()
        loaded = undo.enter_context(load(spec.resize(**sizes), btf=types))
        links = undo.enter_context(ExitStack())
        for name in HOOKS[way]:
            links.enter_context(loaded.programs[name].attach())
        undo.pop_all()
    return Loaded(loaded, links, way, why, is_typed)


def _spec(way: str, *, is_typed: bool) -> ObjectSpec:
    programs = (*HOOKS[way], ITERATOR) if is_typed else HOOKS[way]
    spec = adapt(objects.spec("summary").only(*programs))
    if way == "tp_btf":
        return spec
    return without_task_storage(spec).set(fork_child_offset=_fork_child_offset())


def _fork_child_offset() -> int:
    """Return the offset of the child's number in the tracepoint sched_process_fork: it has
    moved.
    """
    text = tracefs.tracepoint_format("sched", "sched_process_fork")
    match = re.search(r"child_pid;\s*offset:(\d+);", text)
    if match is None:
        raise NotSupportedError("following new tasks", "sched_process_fork does not have child_pid")
    return int(match[1])


def _machine_settings(machine: syscalls.MachineAbis) -> dict[str, Any]:
    exits = [
        [syscalls.number(abi, name) or 0 for name in ("exit", "exit_group")]
        for abi in (machine.native, machine.compat)
    ]
    return {
        "compat_flag": machine.compat_flag,
        "exit_numbers": exits,
        "number_offset": _NUMBER_OFFSETS.get(machine.native, 0),
    }
