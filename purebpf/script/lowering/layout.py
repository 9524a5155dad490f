"""Names and places that the generated programs and their session share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.script.actions import Action
from purebpf.script.host import Host
from purebpf.script.map_info import MapInfo
from purebpf.script.settings import Config, Settings
from purebpf.script.types import Type
from purebpf.slotted import Slotted, field

__all__ = ["BUSY", "EXITED", "FIRST_FREE", "LOST", "LOST_STACKS", "SCRATCH", "SCRATCH_SLOTS",
           "STACKS", "STACK_DEPTH", "STARTED", "TAI", "TARGET_CGROUP", "WALL", "ZEROS",
           "Context"]  # fmt: skip

LOST, STARTED, BUSY, LOST_STACKS = 0, 8, 16, 24
"""Places in the globals: lost events, the start in ns, runs without scratch, lost stacks."""
WALL, TAI = 32, 40
"""Places of the difference from the time since boot to the time of day, and to TAI, in ns."""
EXITED = 48
"""Place of the word that exit() sets: timers of the script do nothing from then on."""
FIRST_FREE = 56
SCRATCH, ZEROS, STACKS = "scratch", "zeros", "stacks"
TARGET_CGROUP = "target_cgroup"
"""The map with the descriptor of the cgroup whose tasks are traced."""
SCRATCH_SLOTS = 4
STACK_DEPTH = 127


class Context(Slotted):
    """The parts of a script that all of its programs share.

    Attributes:
        search_function: the BTF id of the kernel function bpf_strstr.
        find_task: returns `struct task_struct`, None if the kernel has no types.
        uses_stacks: True if programs store kernel stacks.
        walks_user_stacks: True if programs call `user_stack()` of `purebpf.stacks`.
    """

    text: str
    name: str
    host: Host
    settings: Settings
    config: Config
    maps: Mapping[str, MapInfo]
    find_task: Callable[[], Type | None]
    actions: list[Action] = field(default_factory=list, init=False)
    scratch_size: int = 0
    zeros_size: int = 8
    search_function: int = 0
    uses_stacks: bool = False
    walks_user_stacks: bool = False
    has_loops: bool = False
    globals_size: int = FIRST_FREE

    def add_action(self, action: Action) -> int:
        """Return the number of an action; equal ones share it."""
        if action not in self.actions:
            self.actions.append(action)
        return self.actions.index(action)
