"""Write docs/schemas/NAME-1.json for the JSON of commands whose results are named tuples.

    .venv/bin/python scripts/generate_schemas.py [--check]

The types of the fields say what a reader may rely on; readers ignore members that they do not know.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from purebpf.tools.doctor.model import Report as DoctorReport
from purebpf.tools.dump.model import ProcessDump

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS: Mapping[str, type] = {"doctor": DoctorReport, "dump": ProcessDump}
_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    # numbers that JavaScript would round are hexadecimal text
    int: {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?0x[0-9a-f]+$"}]},
    float: {"type": "number"},
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's document."""
    body = _object(DOCUMENTS[name])
    named = {"schema": {"const": f"purebpf.{name}/1"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"purebpf {name} --json, schema 1",
        **body,
        "required": ["schema", *body["required"]],
        "properties": named | body["properties"],
    }


def _object(fields: type) -> dict[str, Any]:
    hints = typing.get_type_hints(fields)
    optional = {name for name, hint in hints.items() if type(None) in typing.get_args(hint)}
    return {
        "type": "object",
        "required": [name for name in hints if name not in optional],
        "properties": {name: _type(hint) for name, hint in hints.items()},
    }


def _type(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return _PLAIN[hint]
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        (present,) = (kind for kind in arguments if kind is not type(None))
        return _type(present)
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _type(arguments[0])}
    return _object(hint)


def main() -> int:
    """Write the files, or with --check say which differ."""
    stale = 0
    for name in DOCUMENTS:
        file = ROOT / f"docs/schemas/{name}-1.json"
        text = json.dumps(schema(name), indent=2) + "\n"
        if sys.argv[1:] != ["--check"]:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            sys.stderr.write(f"{file}: run scripts/generate_schemas.py\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
