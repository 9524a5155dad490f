"""The events and places to count, for a command line or a program. Pure."""

from __future__ import annotations

from purebpf.measure.options import RunOptions, TargetOptions

__all__ = ["GROUPINGS", "HARDWARE", "Groups", "StatOptions", "default_groups", "parse_groups"]

Groups = tuple[tuple[str, ...], ...]
"""Events by name; those of a tuple run on the CPU's counters together or not at all."""

GROUPINGS = ("", "cpu", "thread")

HARDWARE: Groups = (("cycles", "instructions"), ("branches", "branch-misses"))
"""What is counted by default where the machine has hardware counters."""


class StatOptions(TargetOptions, RunOptions):
    """The target, and which events. Empty tuples and None mean: no restriction.

    `groups` () is `default_groups`, and HARDWARE where there is any. `tree`: children of `pids`
    count, too. `by` is one of GROUPINGS: a count for each CPU, or for each thread of the target,
    instead of their sum. `inherit`: threads that processes start from now on count, too, and
    children of a command. `all_cpus`: all tasks count for as long as the command runs.
    `for_each_cgroup`: each cgroup v2 counts alone, with its descendants, if its path below the
    mount fits one of these patterns. `bpf_programs`: count the events during runs of the BPF
    programs with these IDs, each alone. `shared`: all sessions that ask for the same events, in the
    same groups, use one set of counters per CPU; `bpffs` is the place where they find one another.
    `interval_s` None: one result, at the end. `duration_s` None: until a signal, or until `command`
    or all of `pids` end.
    """

    groups: Groups = ()
    all_cpus: bool = False
    for_each_cgroup: tuple[str, ...] = ()
    bpf_programs: tuple[int, ...] = ()
    shared: bool = False
    bpffs: str = ""
    by: str = ""
    inherit: bool = True
    interval_s: float | None = None

    @property
    def is_of_tasks(self) -> bool:
        """True if events follow threads from CPU to CPU; else they stay on their CPU."""
        of_command = self.command and not self.is_of_all
        return bool(self.pids or self.tids or self.uid is not None or of_command)

    @property
    def is_of_all(self) -> bool:
        """True if tasks count that the command did not start."""
        return self.all_cpus or bool(self.for_each_cgroup or self.bpf_programs)


def default_groups(*, of_tasks: bool) -> Groups:
    """The software events that every machine has."""
    clock = "task-clock" if of_tasks else "cpu-clock"
    return ((clock,), ("context-switches",), ("cpu-migrations",), ("page-faults",))


def parse_groups(text: str) -> Groups:
    """Groups of a list such as `page-faults,{cycles,instructions}:u,cpu/event=1,umask=2/`.

    Modifiers behind a group apply to each of its events.

    Raises:
        ValueError: braces that do not match, an empty group, or an event without a name.
    """
    groups: list[tuple[str, ...]] = []
    for part in _split(text):
        if not part.startswith("{"):
            groups.append((part,))
            continue
        inside, brace, modifiers = part[1:].rpartition("}")
        if not brace or (modifiers and not modifiers.startswith(":")):
            raise ValueError(f"{part!r} is not a group such as {{cycles,instructions}}:u")
        groups.append(tuple(_add_modifiers(name, modifiers) for name in _split(inside)))
    return tuple(groups)


def _split(text: str) -> list[str]:
    """Return the parts between commas outside braces and slashes."""
    parts = [""]
    depth, in_unit = 0, False
    for char in text:
        in_unit ^= char == "/" and not parts[-1].rpartition(",")[2].lstrip("{").startswith("mem:")
        depth += (char == "{") - (char == "}")
        if depth not in (0, 1):
            raise ValueError(f"the braces of {text!r} do not match")
        if char == "," and not depth and not in_unit:
            parts.append("")
        else:
            parts[-1] += char
    if depth:
        raise ValueError(f"a closing brace is missing in {text!r}")
    if not all(parts):
        raise ValueError(f"an event of {text!r} does not have a name: is there a comma too many?")
    return parts


def _add_modifiers(name: str, modifiers: str) -> str:
    if name.endswith("/"):
        return name + modifiers.removeprefix(":")
    return name + modifiers
