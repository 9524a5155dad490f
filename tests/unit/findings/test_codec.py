"""Facts to JSON and back."""

from __future__ import annotations

import json

import pytest

from purebpf.errors import FormatError
from purebpf.findings.codec import decode_facts, encode_facts
from purebpf.findings.facts import Blocked, Process
from tests.support.builders.facts import THREAD, facts, own, running


def test_facts_survive_json() -> None:
    measured = facts(
        running(7, 8, own("view"), *THREAD),
        blocked=(Blocked(7, 9, "futex", (1, 2, 3), words=(2, 0, 8)),),
        descriptors={7: {3: "socket:[5]"}},
        lock_holders={7: {4096: 8}},
    )
    measured = measured._replace(
        processes=(*measured.processes, Process(9, 1, "pg", titles={"postgres: idle": 3}))
    )
    assert decode_facts(json.loads(json.dumps(encode_facts(measured)))) == measured


@pytest.mark.parametrize("document", [{}, {"facts_schema": 99}, {"facts_schema": 1, "no": 1}])
def test_other_documents_are_refused(document: dict[str, int]) -> None:
    with pytest.raises(FormatError):
        decode_facts(document)
