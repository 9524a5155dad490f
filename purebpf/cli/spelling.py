"""How the user typed a command: `purebpf profile`, or `python -P -m purebpf.profile`.

What help and errors say can then be typed in turn.
"""

from __future__ import annotations

__all__ = ["message_name", "spell_command"]

front_door = False
"""Whether `purebpf` was started, and has chosen the command."""


def spell_command(name: str) -> str:
    """What starts the command of a name such as `purebpf.profile`."""
    return message_name(name) if front_door else f"python -P -m {name}"


def message_name(name: str) -> str:
    """The name before the messages of a command, such as `purebpf.profile`."""
    return name.replace(".", " ", 1) if front_door else name
