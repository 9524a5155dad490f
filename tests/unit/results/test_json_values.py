"""Documents of JSON name their schema, and have no number that a reader rounds."""

from __future__ import annotations

import json
from typing import NamedTuple

from purebpf.results.model.json_values import exact, json_object


class Row(NamedTuple):
    """A row with an address."""

    name: str
    address: int


def test_a_document_begins_with_its_schema() -> None:
    assert list(json_object("stat", {"runs": 1})) == ["schema", "runs"]
    assert json_object("stat", {})["schema"] == "purebpf.stat/1"


def test_numbers_above_2_to_the_53_are_text_at_any_depth() -> None:
    kernel = 0xFFFFFFFF81214B90
    rows = (Row("read", kernel), {"words": [-1 << 60, 1 << 53]})
    document = json_object("dump", {"rows": rows})
    assert document["rows"] == [
        {"name": "read", "address": "0xffffffff81214b90"},
        {"words": ["-0x1000000000000000", 1 << 53]},
    ]
    # a reader that has doubles only keeps every number
    assert json.loads(json.dumps(document), parse_int=float)["rows"][1]["words"][1] == 2.0**53


def test_truth_and_text_stay() -> None:
    assert [exact(value) for value in (True, None, "0x1", 1.5)] == [True, None, "0x1", 1.5]
