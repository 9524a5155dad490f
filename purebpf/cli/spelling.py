"""How the user typed a command: `purebpf profile`, or `python -P -m purebpf.profile`.

What help and errors say can then be typed in turn.
"""

from __future__ import annotations

__all__ = ["help_text", "message_name", "typed"]

front_door = False
"""Whether `purebpf` was started, and has chosen the command."""

_MODULE = "python -m purebpf."
_SAFE_MODULE = "python -P -m purebpf."
"""-P: Python imports nothing from the current directory, where others may have put it."""


def typed(name: str) -> str:
    """What starts the command of a name such as `purebpf.profile`."""
    return message_name(name) if front_door else f"python -P -m {name}"


def message_name(name: str) -> str:
    """The name before the messages of a command, such as `purebpf.profile`."""
    return name.replace(".", " ", 1) if front_door else name


def help_text(text: str) -> str:
    """A help text that was written for `python -m purebpf.NAME`."""
    return text.replace(_MODULE, "purebpf " if front_door else _SAFE_MODULE)
