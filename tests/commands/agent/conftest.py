"""Tests of the agent start agents, of which a host has one at a time."""

from __future__ import annotations

import pytest

from purebpf.services.agent.host_lock import HostLock, SecondAgentError


@pytest.fixture(autouse=True, scope="session")
def no_other_agent() -> None:
    """Says which agent is in the way, rather than each test in a way of its own."""
    try:
        HostLock().close()
    except SecondAgentError as error:
        pytest.fail(f"{error}. These tests start agents of their own", pytrace=False)
