"""speedscope's own JSON: https://www.speedscope.app/file-format-schema.json."""

from __future__ import annotations

from json import JSONEncoder
from typing import Any

from purebpf.results.model.profile import Profile
from purebpf.results.shape.functions import Function, Functions, in_file

__all__ = ["EXPORTER", "SCHEMA", "document"]

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
EXPORTER = "purebpf"

_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}


def document(profile: Profile) -> str:
    """One sampled profile; each stack begins with its process, as folded stacks do."""
    functions = Functions(in_file)
    samples: list[list[int]] = []
    weights: list[int] = []
    for row in reversed(profile.rows()):
        samples.append([functions.process(row.labels.comm), *functions.path(row)])
        weights.append(row.weight)
    tree = {
        "$schema": SCHEMA,
        "exporter": EXPORTER,
        "name": profile.title,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(frame) for frame in functions.table]},
        "profiles": [
            {
                "type": "sampled",
                "name": profile.title,
                "unit": _UNITS.get(profile.unit, "none"),
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return JSONEncoder(separators=(",", ":")).encode(tree) + "\n"


def _frame(function: Function) -> dict[str, Any]:
    frame = {"name": function.name}
    if function.file or function.module:
        frame["file"] = function.file or function.module
    return frame
