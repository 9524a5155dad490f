"""Facts as JSON and back: objects for named tuples, whatever is at its default left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from purebpf.damage import describe
from purebpf.errors import FormatError
from purebpf.findings.facts import Facts

__all__ = ["decode_facts", "encode_facts"]

SCHEMA = 1


def encode_facts(facts: Facts) -> dict[str, Any]:
    """A document for `json.dumps`."""
    return {"facts_schema": SCHEMA, **cast("dict[str, Any]", _encode(facts))}


def decode_facts(document: Mapping[str, Any]) -> Facts:
    """Facts from a document of `json.loads`.

    Raises:
        FormatError: it has another schema, or is none.
    """
    fields = dict(document)
    schema = fields.pop("facts_schema", None)
    if schema != SCHEMA:
        raise FormatError(
            "facts", "facts_schema", f"it is {schema}, and this version reads {SCHEMA}"
        )
    try:
        return cast("Facts", _decode(Facts, fields))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("facts", "document", describe(error)) from None


def _encode(value: Any) -> Any:
    if isinstance(value, tuple):
        defaults = getattr(value, "_field_defaults", None)
        if defaults is None:
            return [_encode(item) for item in value]
        pairs = zip(getattr(value, "_fields", ()), value, strict=True)
        return {
            name: _encode(item)
            for name, item in pairs
            if name not in defaults or defaults[name] != item
        }
    if isinstance(value, dict):
        return {str(key): _encode(item) for key, item in value.items()}
    return round(value, 6) if isinstance(value, float) else value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin is tuple:
        return tuple(_decode(get_args(kind)[0], item) for item in value)
    if origin is dict:
        key, item = get_args(kind)
        return {key(name): _decode(item, each) for name, each in value.items()}
    if hasattr(kind, "_fields"):
        hints = _hints(kind)
        return kind(**{name: _decode(hints[name], each) for name, each in value.items()})
    return kind(value)
