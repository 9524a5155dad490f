"""CO-RE: which target types are looked at, how they agree, and what is said about the result."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from purebpf.abi.bpf import bpf_core_relo_kind as K  # noqa: N812
from purebpf.btf.core.matching import CoreMatcher, CoreResult, match
from purebpf.btf.types.parse import Btf
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.spec import CoreRelocation
from tests.support.builders.btf_builder import BtfBuilder

OFFSET = K.BPF_CORE_FIELD_BYTE_OFFSET
EXISTS = K.BPF_CORE_FIELD_EXISTS
SIZE = K.BPF_CORE_FIELD_BYTE_SIZE


def relocation(type_id: int, access: str, kind: int) -> CoreRelocation:
    return CoreRelocation(0, type_id, access, kind)


def one(local: Btf, type_id: int, access: str, kind: int, *targets: Btf) -> CoreResult:
    return match(local, [relocation(type_id, access, kind)], targets)[0]


def struct_btf(*structs: tuple[str, list[str]], source: str = "vmlinux") -> Btf:
    """Structs of ints, by name and members."""
    builder = BtfBuilder()
    integer = builder.int("int", 4, signed=True)
    for name, members in structs:
        builder.struct(name, [(member, integer) for member in members])
    return Btf(builder.bytes(), source=source)


LOCAL = struct_btf(("task", ["pid", "prio"]), ("task___old", ["pid", "state"]), source="local")
TASK, TASK_OLD = 2, 3


def test_a_field_is_found_by_name() -> None:
    target = struct_btf(("other", ["pid"]), ("task", ["a", "b", "pid"]))

    result = one(LOCAL, TASK, "0:0", OFFSET, target)

    assert (result.value, result.local_value, result.problem) == (8, 0, "")


def test_a_local_flavour_is_not_part_of_the_name() -> None:
    target = struct_btf(("task", ["state", "pid"]))
    assert one(LOCAL, TASK_OLD, "0:0", OFFSET, target).value == 4


def test_a_target_flavour_is_a_candidate_too() -> None:
    target = struct_btf(("task___2", ["a", "pid"]))
    assert one(LOCAL, TASK, "0:0", OFFSET, target).value == 4


def test_only_what_follows_the_last_three_underscores_is_a_flavour() -> None:
    local = struct_btf(("a___b___c", ["x"]))
    target = struct_btf(("a", ["p", "x"]), ("a___b", ["p", "q", "x"]))
    assert one(local, 2, "0:0", OFFSET, target).value == 8


def test_a_union_is_not_a_candidate_for_a_struct() -> None:
    builder = BtfBuilder()
    integer = builder.int("int", 4)
    builder.union("task", [("pid", integer)])
    assert one(LOCAL, TASK, "0:0", EXISTS, builder.btf()).value == 0


def test_modules_are_searched_only_when_vmlinux_has_no_candidate() -> None:
    base = BtfBuilder()
    integer = base.int("int", 4)
    base.struct("task", [("other", integer)])
    module = BtfBuilder(base=base)
    module.struct("task", [("pad", integer), ("pid", integer)])
    vmlinux = base.btf()
    targets = (vmlinux, Btf(module.bytes(), vmlinux, "module"))

    assert one(LOCAL, TASK, "0:0", OFFSET, *targets).problem == "no such field on this kernel"


def test_every_module_is_searched_when_vmlinux_has_none() -> None:
    vmlinux = struct_btf(("unrelated", ["a"]))
    first = struct_btf(("task", ["pad", "pid"]), source="first")
    second = struct_btf(("task", ["pad", "pad2", "pid"]), source="second")

    assert one(LOCAL, TASK, "0:0", OFFSET, vmlinux, first).value == 4
    with pytest.raises(CoreRelocationError, match="ambiguous"):
        one(LOCAL, TASK, "0:0", OFFSET, vmlinux, first, second)


def test_of_a_module_only_its_own_types_are_searched() -> None:
    base = BtfBuilder()
    integer = base.int("int", 4)
    base.struct("task", [("pad", integer), ("pid", integer)])
    module = BtfBuilder(base=base)
    module.struct("task", [("pid", integer)])
    split = Btf(module.bytes(), base.btf(), "module")

    result = one(LOCAL, TASK, "0:0", OFFSET, struct_btf(("unrelated", ["x"])), split)

    assert result.value == 0
    assert "in module" in result.found


def test_targets_are_not_asked_for_local_type_ids() -> None:
    def targets() -> Iterator[Btf]:
        pytest.fail("the kernel's BTF was read")
        yield LOCAL

    result = match(LOCAL, [relocation(TASK, "0", K.BPF_CORE_TYPE_ID_LOCAL)], targets)[0]

    assert (result.value, result.is_checked) == (TASK, False)


def test_modules_are_not_asked_for_while_vmlinux_suffices() -> None:
    def targets() -> Iterator[Btf]:
        yield struct_btf(("task", ["pid"]))
        pytest.fail("a module's BTF was read")

    relocations = [relocation(TASK, access, EXISTS) for access in ("0:0", "0:1")]

    assert [result.value for result in match(LOCAL, relocations, targets())] == [1, 0]


def test_candidates_that_agree_are_one() -> None:
    target = struct_btf(("task", ["pid", "a"]), ("task", ["pid", "b"]))
    assert one(LOCAL, TASK, "0:0", OFFSET, target).value == 0


def test_candidates_at_different_offsets_are_named() -> None:
    target = struct_btf(("task", ["pid"]), ("task___2", ["pad", "pid"]))

    with pytest.raises(CoreRelocationError) as caught:
        one(LOCAL, TASK, "0:0", OFFSET, target)

    message = str(caught.value)
    assert "struct task.pid of type 2 in vmlinux gives bit 0" in message
    assert "struct task___2.pid of type 3 in vmlinux gives bit 32" in message


def test_existence_is_ambiguous_too_when_offsets_differ() -> None:
    target = struct_btf(("task", ["pid"]), ("task", ["pad", "pid"]))
    with pytest.raises(CoreRelocationError, match=r"bit 0.*bit 32"):
        one(LOCAL, TASK, "0:0", EXISTS, target)


def test_candidates_with_different_numbers_are_ambiguous() -> None:
    builder = BtfBuilder()
    for width in (4, 8):
        builder.struct("task", [("pid", builder.int(f"int{width}", width))])

    assert one(LOCAL, TASK, "0:0", OFFSET, builder.btf()).value == 0
    with pytest.raises(CoreRelocationError, match=r"gives 4.*gives 8"):
        one(LOCAL, TASK, "0:0", SIZE, builder.btf())


def test_a_match_narrows_the_candidates_of_later_relocations() -> None:
    target = struct_btf(("task", ["pid", "prio"]), ("task", ["pad", "pid"]))
    only_in_first, in_both = relocation(TASK, "0:1", OFFSET), relocation(TASK, "0:0", OFFSET)

    assert [r.value for r in match(LOCAL, [only_in_first, in_both], [target])] == [4, 0]
    with pytest.raises(CoreRelocationError, match="ambiguous"):
        match(LOCAL, [in_both, only_in_first], [target])


def test_no_match_leaves_the_candidates_alone() -> None:
    target = struct_btf(("task", ["prio", "x"]), ("task", ["prio", "y"]))
    missing, present = relocation(TASK, "0:0", EXISTS), relocation(TASK, "0:1", OFFSET)
    assert [r.value for r in match(LOCAL, [missing, present], [target])] == [0, 0]


def test_flavours_of_one_type_are_narrowed_apart() -> None:
    target = struct_btf(("task", ["pid", "prio"]), ("task", ["pad", "pid", "state"]))
    relocations = [
        relocation(TASK, "0:1", EXISTS),
        relocation(TASK_OLD, "0:1", EXISTS),
        relocation(TASK, "0:0", OFFSET),
        relocation(TASK_OLD, "0:0", OFFSET),
    ]
    assert [result.value for result in match(LOCAL, relocations, [target])] == [1, 1, 0, 4]


def test_results_are_kept() -> None:
    matcher = CoreMatcher(LOCAL, [struct_btf(("task", ["pid"]))])
    first = matcher.match(CoreRelocation(0, TASK, "0:0", OFFSET))
    assert matcher.match(CoreRelocation(64, TASK, "0:0", OFFSET)) is first


def test_answers_are_not_kept_beyond_the_candidates_that_gave_them() -> None:
    builder = BtfBuilder()
    wide, narrow = builder.int("long", 8), builder.int("int", 4)
    builder.struct("task", [("pid", wide)])
    builder.struct("task", [("pid", narrow), ("prio", narrow)])
    matcher = CoreMatcher(LOCAL, [builder.btf()])
    pid, prio = relocation(TASK, "0:0", OFFSET), relocation(TASK, "0:1", OFFSET)

    assert matcher.match(pid).size == 8  # of the first candidate, as in libbpf
    matcher.match(prio)
    assert matcher.match(pid).size == 4


def test_a_missing_field_poisons_and_says_so() -> None:
    result = one(LOCAL, TASK_OLD, "0:1", OFFSET, struct_btf(("task", ["pid"])))
    assert result.explain() == "struct task___old.state: no such field on this kernel"


def test_a_missing_type_poisons_and_says_so() -> None:
    result = one(LOCAL, TASK, "0:1", OFFSET, struct_btf(("other", ["pid"])))
    assert result.explain() == "struct task.prio: no struct task on this kernel"


def test_a_found_field_explains_itself() -> None:
    result = one(LOCAL, TASK, "0:1", OFFSET, struct_btf(("task", ["a", "b", "prio"])))
    assert result.explain() == (
        "struct task.prio: field_byte_offset is 8 (struct task.prio of type 2 in vmlinux), "
        "4 when compiled"
    )


@pytest.mark.parametrize("kind", [OFFSET, K.BPF_CORE_TYPE_EXISTS, K.BPF_CORE_TYPE_ID_TARGET])
def test_a_nameless_root_cannot_be_relocated(kind: int) -> None:
    local = struct_btf(("", ["x"]))
    with pytest.raises(CoreRelocationError, match="without a name"):
        one(local, 2, "0:0" if kind == OFFSET else "0", kind, LOCAL)


def test_void_cannot_be_relocated() -> None:
    with pytest.raises(CoreRelocationError, match="without a name"):
        one(LOCAL, 0, "0", K.BPF_CORE_TYPE_EXISTS, LOCAL)


@pytest.mark.parametrize(
    "access", ["", ":", "0:", ":0", "0::1", "x", "-1", "0:-1", "0 ", "+0", "0:²", "1" * 5000]
)
def test_an_access_string_is_a_list_of_numbers(access: str) -> None:
    with pytest.raises(FormatError, match="list of numbers"):
        one(LOCAL, TASK, access, OFFSET, LOCAL)


@pytest.mark.parametrize(
    ("access", "problem"),
    [
        ("0:2", "member 2 of 2"),
        ("0:0:0", "an element or member of a INT"),
        ("2147483648", "2\\^31 or more"),
        (":".join("0" * 65), "65 levels are more than 64"),
    ],
)
def test_an_access_string_stays_in_its_type(access: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        one(LOCAL, TASK, access, OFFSET, LOCAL)


@pytest.mark.parametrize("type_id", [4, 1 << 31])
def test_a_type_id_that_does_not_exist_is_a_format_error(type_id: int) -> None:
    with pytest.raises(FormatError):
        one(LOCAL, type_id, "0:0", OFFSET, LOCAL)


@pytest.mark.parametrize("kind", [13, 255])
def test_an_unknown_kind_is_a_format_error(kind: int) -> None:
    with pytest.raises(FormatError, match=f"cannot answer kind {kind}"):
        one(LOCAL, TASK, "0", kind, LOCAL)


def test_a_whole_type_has_no_path() -> None:
    with pytest.raises(FormatError, match="path '0'"):
        one(LOCAL, TASK, "0:0", K.BPF_CORE_TYPE_EXISTS, LOCAL)
