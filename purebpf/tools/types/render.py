"""The result as text, JSON and CSV. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator

from purebpf.results.model.json_values import json_object
from purebpf.results.model.spelling import printable
from purebpf.tools.types.layouts import Layout
from purebpf.tools.types.result import DataTypes, MemberHeat, StructHeat

__all__ = ["closing_lines", "render", "render_struct"]

LINE = 64
"""Bytes of a cache line of x86-64."""
_FUNCTIONS = 3
_CSV = (
    *("struct", "struct_size", "member", "offset", "size", "line", "samples", "percent"),
    *("reads", "writes", "inferred", "functions"),
)


def render(result: DataTypes, form: str, by: str, top: int = 40) -> Iterator[str]:
    """The table: `form` is "text", "json" or "csv"; `by` is "member" or "function".

    A text has the `top` structs with most samples, the others have all.
    """
    if form == "json":
        return _json(result)
    return _csv(result) if form == "csv" else _text(result, by, top)


def _text(result: DataTypes, by: str, top: int) -> Iterator[str]:
    if not result.samples:
        yield "no samples\n"
        return
    head = "FUNCTION" if by == "function" else f"{'STRUCT, then MEMBER':39s} FUNCTIONS"
    yield f" SHARE  SAMPLES OFFSET  SIZE LINE R/W {head}\n"
    for struct in result.structs[:top]:
        share = _percent(struct.samples, result.samples)
        yield f"{share} {struct.samples:8d} {struct.size:12d} {'':8s} {printable(struct.name)}\n"
        yield from _functions(struct, result) if by == "function" else _members(struct, result)
    rest = result.structs[top:]
    if rest:
        left = sum(struct.samples for struct in rest)
        yield f"{_percent(left, result.samples)} {left:8d}  ({len(rest):,} other types)\n"


def _members(struct: StructHeat, result: DataTypes) -> Iterator[str]:
    for member in struct.members:
        line = "" if _is_whole(member) else str(member.offset // LINE)
        yield (
            f"{_percent(member.samples, result.samples)} {member.samples:8d} {member.offset:6d}"
            f" {member.size:5d} {line:>4s} {_use(member):3s}   {printable(_name(member)):34s}"
            f" {_callers(member)}\n"
        )


def _is_whole(member: MemberHeat) -> bool:
    return not member.name


def _name(member: MemberHeat) -> str:
    return f".{member.name}" if member.name else "(the value itself)"


def _use(member: MemberHeat) -> str:
    return "/".join(("r",) * bool(member.reads) + ("w",) * bool(member.writes))


def _callers(member: MemberHeat) -> str:
    names = list(member.functions)
    more = f" and {len(names) - _FUNCTIONS} more" if len(names) > _FUNCTIONS else ""
    return ", ".join(printable(name) for name in names[:_FUNCTIONS]) + more


def _functions(struct: StructHeat, result: DataTypes) -> Iterator[str]:
    samples: Counter[str] = Counter()
    members: dict[str, list[str]] = {}
    for member in struct.members:
        for function, count in member.functions.items():
            samples[function] += count
            members.setdefault(function, []).append(_name(member))
    for function, count in samples.most_common():
        touched = " ".join(members[function])
        yield (
            f"{_percent(count, result.samples)} {count:8d} {'':6s} {'':5s} {'':4s} {'':3s}"
            f"   {printable(function)}: {printable(touched)}\n"
        )


def render_struct(struct: StructHeat, total: int) -> Iterator[str]:
    """Yield the layout of a struct as pahole lists it, with the share of each member and line."""
    heat = {member.name: member for member in struct.members}
    yield f"{printable(struct.name)}: {struct.size} bytes, {_lines(struct.layout)} cache lines, "
    yield f"{_percent(struct.samples, total).strip()} of all samples\n"
    yield f"{'SHARE':>6s} {'SAMPLES':>8s} {'OFFSET':>6s} {'SIZE':>5s} {'R/W':3s} MEMBER\n"
    by_line: Counter[int] = Counter()
    for member in struct.members:
        by_line[member.offset // LINE] += member.samples
    current = -1
    for field in struct.layout.fields:
        if field.offset // LINE != current:
            current = field.offset // LINE
            share = _percent(by_line[current], total).strip()
            yield f"       --- cache line {current}: {share}\n"
        found = (
            heat.pop(field.name, None) or heat.pop(f"{field.name}[]", None) if field.name else None
        )
        share = _percent(found.samples, total) if found else " " * 6
        samples = str(found.samples) if found else ""
        bits = f" : {field.bits}" if field.bits else ""
        label = f"{field.type} {field.name.rpartition('.')[2]}".rstrip()
        yield (
            f"{share} {samples:>8s} {field.offset:6d} {field.size:5d}"
            f" {_use(found) if found else '':3s} {'  ' * field.depth}{printable(label)}{bits}\n"
        )
    for member in heat.values():
        share = _percent(member.samples, total)
        yield f"{share} {member.samples:8d} {'':16s} {printable(_name(member))}\n"


def _lines(layout: Layout) -> int:
    return (layout.size + LINE - 1) // LINE


def _percent(samples: int, total: int) -> str:
    return f"{100 * samples / total if total else 0:5.1f}%"


def closing_lines(result: DataTypes) -> Iterator[str]:
    """Yield the sentences below the table: the typed samples, and the reasons of the others."""
    total = result.samples
    if not total:
        return
    yield (
        f"typed: {_percent(result.typed, total).strip()} of {total:,} samples"
        f" ({_percent(result.inferred, total).strip()} inferred: elements of arrays, and pointers"
        " known by a later use)"
    )
    for reason, samples in result.reasons.items():
        yield f"  {_percent(samples, total)} {reason}"
    yield from _slab_lines(result)
    if result.is_precise:
        yield f"event: {result.event}; it is precise: each sample counts for its own instruction"
        return
    yield (
        f"event: {result.event}; it points behind the instruction that waited, so each sample"
        " counts for the instruction before"
    )


def _slab_lines(result: DataTypes) -> Iterator[str]:
    right, wrong, typed = result.slabs
    if right or wrong or typed:
        share = _percent(typed, result.samples).strip()
        yield (
            f"slab caches: the types of {right:,} of the {right + wrong:,} samples that they can"
            f" judge agree; {share} have their type from the cache"
        )


def _json(result: DataTypes) -> Iterator[str]:
    for struct in result.structs:
        record = {
            "struct": struct.name,
            "size": struct.size,
            "samples": struct.samples,
            "members": [member._asdict() for member in struct.members],
        }
        yield json.dumps(record) + "\n"
    yield (
        json.dumps(
            json_object(
                "types",
                {
                    "samples": result.samples,
                    "typed": result.typed,
                    "inferred": result.inferred,
                    "untyped": result.reasons,
                    "slabs": result.slabs._asdict(),
                    "event": result.event,
                    "loss": {cause.name: cause.lost for cause in result.loss.causes},
                },
            )
        )
        + "\n"
    )


def _csv(result: DataTypes) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV)
    for struct in result.structs:
        for member in struct.members:
            writer.writerow(
                (
                    struct.name, struct.size, member.name, member.offset, member.size,
                    member.offset // LINE, member.samples,
                    f"{100 * member.samples / max(result.samples, 1):.2f}", member.reads,
                    member.writes, member.inferred, " ".join(member.functions),
                )
            )  # fmt: skip
    yield text.getvalue()
