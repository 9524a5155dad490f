"""Properties are held to what they say, not to how long a busy machine takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from purebpf.cli import named_tasks

# on top of what hypothesis takes by itself, which under CI is the same examples each time
settings.register_profile("purebpf", settings(), deadline=None)
settings.load_profile("purebpf")


@pytest.fixture(autouse=True)
def processes_of_command_lines_live(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let command lines name any process, but in the test of processes that have ended."""

    def keep(pids: Sequence[int]) -> Sequence[int]:
        return pids

    if Path(request.node.path).name != "test_gone_processes.py":
        monkeypatch.setattr(named_tasks, "_leave_out_gone", keep)
