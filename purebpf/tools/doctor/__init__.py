"""The BPF features of this machine for this user, and the obstacles to them.

from purebpf.tools.doctor import examine

report = examine()
print([command.name for command in report.commands if command.obstacles])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.doctor.model import Report
    from purebpf.tools.doctor.session import examine

__all__ = ["Report", "examine"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Report": "purebpf.tools.doctor.model.Report",
            "examine": "purebpf.tools.doctor.session.examine",
        },
    )
