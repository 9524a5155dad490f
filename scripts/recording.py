"""A recording of a terminal as an SVG that moves: commands are typed, and lines appear in time.

Each scene is a group of texts that is seen for its time only; styles move them, so that a browser
needs no script, and a page shows the recording as a picture.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Line", "Scene", "render", "write_recording"]

_KEYS_S, _PAUSE_S = 15, 2.5
_WIDTH, _LINE, _FONT, _MARGIN = 100, 17, 12.5, 14
_ADVANCE = 0.602
"""The width of a character in parts of the font's size."""
_STYLE = f"""\
text {{ font: {_FONT}px "DejaVu Sans Mono", monospace; fill: #d6dbe0; white-space: pre }}
.c {{ fill: #8fd18f }}
text {{ visibility: hidden; animation: 1s step-end infinite }}
"""


class Line(NamedTuple):
    """A line of output, and when it came, in seconds after the command was started."""

    at_s: float
    text: str


class Scene(NamedTuple):
    """A command, its output, and how long it ran."""

    command: str
    lines: Sequence[Line]
    end_s: float


def _wrap(text: str) -> list[str]:
    return [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)] or [""]


def _rows(scene: Scene) -> list[tuple[float, str, str]]:
    """Return the rows of a scene: when each is seen, its class, and its text."""
    rows = []
    typed_s = 0.0
    for text in _wrap(f"# {scene.command}"):
        rows.append((typed_s, "c", text))
        typed_s += len(text) / _KEYS_S
    rows += [(typed_s + line.at_s, "", text) for line in scene.lines for text in _wrap(line.text)]
    return rows


def _length_s(scene: Scene) -> float:
    return (len(scene.command) + 2) / _KEYS_S + scene.end_s + _PAUSE_S


def _moving(name: str, whole_s: float, from_s: float, to_s: float) -> str:
    """Return the style of something that is seen for a while."""
    first, last = (f"{100 * at / whole_s:.2f}%" for at in (from_s, to_s))
    return (
        f"@keyframes {name} {{ {first} {{ visibility: visible }} {last} {{ visibility: hidden }} }}"
        f" .{name} {{ animation-name: {name}; animation-duration: {whole_s:.1f}s }}\n"
    )


def render(scenes: Sequence[Scene]) -> str:
    """Return the SVG of scenes, one after the other."""
    whole_s = sum(map(_length_s, scenes))
    styles: dict[str, str] = {}
    texts, begin_s, most = "", 0.0, 1
    for number, scene in enumerate(scenes):
        end_s, rows = begin_s + _length_s(scene), _rows(scene)
        most = max(most, len(rows))
        for place, (at_s, kind, text) in enumerate(rows):
            name = f"s{number}t{round(10 * at_s)}"  # rows of one moment share their style
            styles[name] = _moving(name, whole_s, begin_s + at_s, end_s)
            classes, y = f"{kind} {name}".strip(), _MARGIN + _LINE * (place + 1)
            shown = html.escape(text, quote=False)
            texts += f'<text class="{classes}" x="{_MARGIN}" y="{y}">{shown}</text>\n'
        begin_s = end_s
    width = round(_WIDTH * _FONT * _ADVANCE) + 2 * _MARGIN
    height = _LINE * most + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">\n'
        f"<style>\n{_STYLE}{''.join(styles.values())}</style>\n"
        f'<rect width="{width}" height="{height}" rx="6" fill="#1b2027"/>\n{texts}</svg>\n'
    )


def write_recording(path: Path, scenes: Sequence[Scene]) -> None:
    """Write the SVG of scenes."""
    path.write_text(render(scenes), encoding="utf-8")
