"""Connections whose client does not read its answer: the oldest of too many ends."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from purebpf.services.fleet import connections
from purebpf.services.fleet.connections import PatientProtocol

pytestmark = pytest.mark.any_kernel


async def _answer(_scope: Any, _receive: Any, _send: Any) -> None:
    pass


def test_the_oldest_of_too_many_unread_answers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_UNREAD", 2)

    async def run() -> list[bool]:
        config = Config(_answer, http=PatientProtocol)
        config.load()
        clients = []
        for _ in range(4):
            client = PatientProtocol(config, ServerState(), {})
            client.connection_made(Mock(asyncio.Transport, max_size=0))
            clients.append(client)
        for client in clients[:3]:
            client.pause_writing()
        clients[1].resume_writing()
        clients[3].pause_writing()
        ended = [client.transport.abort.called for client in clients]
        for client in clients:
            client.connection_lost(None)
        return ended

    assert asyncio.run(run()) == [True, False, False, False]
