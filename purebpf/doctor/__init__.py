"""What BPF can do on this machine, for this user, and what is in the way.

from purebpf.doctor import examine

report = examine()
print([command.name for command in report.commands if command.obstacles])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.doctor.model import Report
    from purebpf.doctor.session import examine

__all__ = ["Report", "examine"]

_HOMES = {"Report": "purebpf.doctor.model", "examine": "purebpf.doctor.session"}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'purebpf.doctor' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
