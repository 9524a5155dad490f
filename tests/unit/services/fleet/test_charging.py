"""A walk over a message adds up its memory, and ends with a value or a WalkError."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

from purebpf.services.fleet.charging import WalkError, charge
from tests.support.host.deliveries import Truth, messages

DESCRIPTOR = ExportProfilesServiceRequest.DESCRIPTOR
NO_LIMIT = 1 << 60


def test_a_message_costs_at_least_its_elements() -> None:
    tree = ExportProfilesServiceRequest()
    for _ in range(100):
        tree.dictionary.stack_table.add().location_indices.extend(range(10))
    tree.dictionary.string_table.extend(["text"] * 50)
    cost = charge(tree.SerializeToString(), DESCRIPTOR, NO_LIMIT)
    assert cost >= 100 * (30 + 10 * 8) + 50 * 30
    assert charge(b"", DESCRIPTOR, 0) == 0


def test_more_than_the_limit_is_refused() -> None:
    (sent,) = messages(Truth(), hosts=1, minutes=1)
    cost = charge(sent.data, DESCRIPTOR, NO_LIMIT)
    assert charge(sent.data, DESCRIPTOR, cost) == cost
    with pytest.raises(WalkError, match="would take more than"):
        charge(sent.data, DESCRIPTOR, cost - 1)


@pytest.mark.parametrize("seed", range(20))
def test_changed_messages_end_with_a_value_or_a_reason(seed: int) -> None:
    rng = random.Random(seed)
    (sent,) = messages(Truth(), hosts=1, minutes=1)
    for _ in range(30):
        data = bytearray(sent.data[: rng.randrange(1, len(sent.data))])
        for _ in range(rng.randrange(1, 20)):
            data[rng.randrange(len(data))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
        with suppress(WalkError):
            assert charge(bytes(data), DESCRIPTOR, NO_LIMIT) >= 0
