"""Recordings of a terminal: rows are seen from their time to the end of their scene."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from scripts.recording import Line, Scene, render

SCENES = [Scene("a" * 150, [Line(0.5, "one & <two>"), Line(0.5, "three")], 2.0),
          Scene("b", [], 1.0)]  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def test_rows_are_texts_below_each_other() -> None:
    root = ET.fromstring(render(SCENES))
    texts = [(text.get("y"), text.text) for text in root.iter(f"{SVG}text")]
    assert texts == [
        ("31", "# " + "a" * 98), ("48", "a" * 52), ("65", "one & <two>"), ("82", "three"),
        ("31", "# b"),
    ]  # fmt: skip
    assert root.get("viewBox", "").split()[3] == str(14 * 2 + 17 * 4)


def test_rows_are_seen_in_time() -> None:
    text = render(SCENES)
    moments = {
        name: (float(first), float(last))
        for name, first, last in re.findall(
            r"@keyframes (\w+) \{ ([\d.]+)% \{ visibility: visible \} ([\d.]+)% ", text
        )
    }
    assert sorted(moments) == ["s0t0", "s0t106", "s0t67", "s1t0"]
    assert moments["s0t0"][0] == 0
    assert moments["s0t67"][0] < moments["s0t106"][0] < moments["s0t106"][1]
    assert moments["s0t0"][1] == moments["s0t106"][1] == moments["s1t0"][0]
    assert moments["s1t0"][1] == 100
