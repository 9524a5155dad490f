"""A BTF type as C spells it, for error messages."""

from __future__ import annotations

from purebpf.btf.types.kinds import FuncProto, Kind
from purebpf.btf.types.names import printable
from purebpf.btf.types.parse import MAX_DEPTH, Btf

_KEYWORDS = {
    Kind.STRUCT: "struct",
    Kind.UNION: "union",
    Kind.ENUM: "enum",
    Kind.ENUM64: "enum",
    Kind.FWD: "struct",
}


def spell(btf: Btf, type_id: int) -> str:
    """`type_id` in C: "const char *", "struct event", "__u8[16]", "int (*)(struct sock *)".

    Stops with "..." where the type refers to itself, and shows no parameters of functions that are
    parameters. FormatError as `Btf.type` has it.
    """
    return _spell(btf, type_id, parameters=True)


def _spell(btf: Btf, type_id: int, *, parameters: bool) -> str:
    before, after = "", ""
    for _ in range(MAX_DEPTH):
        btf_type = btf.type(type_id)
        match btf_type.kind:
            case Kind.CONST | Kind.VOLATILE | Kind.RESTRICT:
                before = f"{btf_type.kind.name.lower()} {before}"
            case Kind.PTR:
                before, after = "", f" *{before.rstrip()}{after}"
            case Kind.ARRAY:
                after += f"[{btf_type.count}]"
            case Kind.FUNC_PROTO:
                assert isinstance(btf_type, FuncProto)
                return before + _function(btf, btf_type, after, parameters=parameters)
            case Kind.TYPE_TAG:
                pass
            case kind:
                name = printable(btf_type.name) or "(anonymous)"
                return before + f"{_KEYWORDS.get(kind, '')} {name}".lstrip() + after
        type_id = btf_type.element if btf_type.kind is Kind.ARRAY else btf_type.type_id
    return f"{before}...{after}"


def _function(btf: Btf, prototype: FuncProto, after: str, *, parameters: bool) -> str:
    """Spell a function by its return type, its parameters, and `after`, the reference to it."""
    if not parameters:
        return f"function{after}"
    taken = ", ".join(
        _spell(btf, parameter.type_id, parameters=False) if parameter.type_id else "..."
        for parameter in prototype.params
    )
    returned = _spell(btf, prototype.return_type, parameters=False)
    return f"{returned} {f'({after.strip()})' if after else ''}({taken or 'void'})"
