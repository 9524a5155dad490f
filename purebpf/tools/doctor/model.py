"""The findings of `purebpf doctor`, as data."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["Answer", "Command", "Fact", "Report"]


class Fact(NamedTuple):
    """Something that was read.

    Attributes:
        name: the subject: a capability, a sysctl, a mount.
        value: as read, or why it could not be.
        meaning: its meaning for BPF here, or "".
    """

    name: str
    value: str
    meaning: str = ""


class Answer(NamedTuple):
    """The kernel's answer to a feature; `group` is "program types", "attachments", ..."""

    group: str
    name: str
    supported: bool
    reason: str


class Command(NamedTuple):
    """A command of purebpf and its obstacles: none, if it would run."""

    name: str
    obstacles: tuple[str, ...]


class Report(NamedTuple):
    """Everything. `asked` is False when the kernel lets this user ask about no feature at all."""

    kernel: str
    user: tuple[Fact, ...]
    settings: tuple[Fact, ...]
    machine: tuple[Fact, ...]
    asked: bool
    features: tuple[Answer, ...]
    commands: tuple[Command, ...]
