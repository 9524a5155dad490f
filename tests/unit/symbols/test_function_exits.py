"""Where functions are left: code that is written down, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.function_exits import ALWAYS, Exits, find_exits, least_size
from purebpf.symbols.x86_64_code import CodeError

F, G, STUB = 0x1000, 0x2000, 0x3000
"""Where the function, another one, and an entry of a PLT are."""
STUB_CODE = "f3 0f 1e fa ff 25 00 10 00 00"


class Code:
    """Functions by address, as hexadecimal bytes; `parts` belong to another one."""

    def __init__(self, functions: dict[int, str], **facts: object) -> None:
        self.functions = {at: bytes.fromhex(code) for at, code in functions.items()}
        self.parts = facts.get("parts", ())
        self.entry_like = facts.get("entry_like")
        self.called = facts.get("names", {})
        self.stubs = facts.get("stubs", {})

    def code(self, address: int, size: int) -> bytes:
        for start, code in self.functions.items():
            if start <= address < start + len(code):
                return code[address - start :][:size]
        return b""

    def check(self) -> None:
        pass

    def range_of(self, address: int) -> CodeRange | None:
        for start, code in self.functions.items():
            if start <= address < start + len(code):
                return CodeRange(start, start + len(code))
        return None

    def is_part(self, address: int) -> bool:
        return address in self.parts

    def is_entry_like(self, address: int) -> bool | None:
        del address
        return self.entry_like

    def names(self, address: int) -> tuple[str, ...]:
        return self.called.get(address, ())

    def behind_stub(self, address: int) -> int:
        return self.stubs.get(address, 0)


def jump(opcode: str, at: int, target: int) -> str:
    """A jump with 32 bits, in hexadecimal, at an address."""
    size = len(bytes.fromhex(opcode)) + 4
    return opcode + (target - at - size).to_bytes(4, "little", signed=True).hex()


def exits(functions: dict[int, str], **facts: object) -> Exits:
    return find_exits(Code(functions, **facts), F)


def test_every_return_is_found():
    found = exits({F: "85 ff 74 01 c3 31 c0 c3"})
    assert found == Exits((F + 4, F + 7), (), (), ())


def test_a_call_goes_on_in_the_function_that_is_jumped_to():
    found = exits({F: jump("e9", F, G), G: "90 c3"})
    assert found == Exits((G + 1,), (), ((F, ALWAYS),), (G,))


class Stripped(Code):
    """The first function has a symbol, the others have none."""

    def range_of(self, address: int) -> CodeRange | None:
        known = super().range_of(address)
        return known if known and known.start == F else None


@pytest.mark.parametrize(
    ("before", "code", "returns"),
    [
        ("", "85 ff 74 01 c3 90 c3", (G + 4, G + 6)),
        ("53 5b", "c3", (G,)),
        ("48 83 ec 18 48 83 c4 18", "c3", (G,)),
        ("55 48 89 e5 48 83 e4 f0 c9", "f4", ()),  # musl's a_crash()
    ],
)
def test_a_function_without_a_symbol_that_is_jumped_to(before, code, returns):
    """musl's malloc is a jump to a function that a stripped library does not name."""
    at = F + len(bytes.fromhex(before))
    functions = {F: before + jump("e9", at, G), G: code + "90" * 8}
    found = find_exits(Stripped(functions), F)
    assert found == Exits(returns, (), ((at, ALWAYS),), (G,))


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("53", "c3"),  # as jumps into cold parts are: the stack is not as at the start
        ("48 83 ec 08", "c3"),
        ("48 8d 64 24 f8", "c3"),
        ("c9", "c3"),  # without a frame pointer
        ("85 ff 74 01 53", "c3"),  # pushed on one way only
        ("", "ff e0"),  # cases of a switch may follow
        ("", "90 06"),
        ("", "90"),
    ],
)
def test_code_without_a_symbol_that_may_be_something_else(before, code):
    at = F + len(bytes.fromhex(before))
    functions = {F: before + jump("e9", at, G), G: code}
    with pytest.raises(CodeError, match="where no function is known"):
        find_exits(Stripped(functions), F)


def test_a_jump_may_have_a_condition():
    found = exits({F: jump("0f 85", F, G) + "c3", G: "c3"})
    assert found == Exits((F + 6, G), (), ((F, 5),), (G,))


def test_a_cold_part_is_a_part_of_the_function():
    found = exits({F: jump("0f 85", F, G) + "c3", G: "c3"}, parts=(G,))
    assert found == Exits((F + 6, G), (), (), ())


def test_a_jump_to_the_own_start_is_marked():
    found = exits({F: "ff cf 75 fc c3"})
    assert found == Exits((F + 4,), (), ((F + 2, 5),), ())


def test_a_stub_of_a_function_of_the_same_file_leads_on():
    code = {F: jump("e9", F, STUB), STUB: STUB_CODE, G: "c3"}
    assert exits(code, stubs={STUB: G}) == Exits((G,), (), ((F, ALWAYS),), (G,))


def test_a_stub_of_the_function_itself_leads_to_its_start():
    code = {F: jump("0f 85", F, STUB) + "c3", STUB: STUB_CODE}
    assert exits(code, stubs={STUB: F}) == Exits((F + 6,), (), ((F, 5),), ())


def test_a_jump_to_another_file_ends_the_call():
    found = exits({F: jump("e9", F, STUB), STUB: STUB_CODE})
    assert found == Exits((), ((F, ALWAYS),), (), ())


@pytest.mark.parametrize(
    "code",
    [
        "ff 25 00 00 00 00",  # jmp *x(%rip)
        "ff 60 18",  # jmp *24(%rax)
        "48 8b 07 ff e0",  # mov (%rdi),%rax; jmp *%rax
        "48 89 f8 ff e0",  # mov %rdi,%rax; jmp *%rax
        "5b ff e0",  # pop %rbx; jmp *%rax
        "e8 00 00 00 00 ff e0",
    ],
)
def test_a_jump_by_a_pointer_ends_the_call(code):
    at = (
        F + len(bytes.fromhex(code)) - (6 if code.startswith("ff 25") else 3 if "60" in code else 2)
    )
    assert exits({F: code}) == Exits((), ((at, ALWAYS),), (), ())


@pytest.mark.parametrize(
    "code",
    [
        "48 63 04 b9 48 01 c8 ff e0 c3",  # movslq (%rcx,%rdi,4),%rax; add %rcx,%rax; jmp *%rax
        "ff 24 fd 00 10 40 00 c3",  # jmp *table(,%rdi,8)
        "3e ff e0 c3",  # notrack jmp *%rax
    ],
)
def test_the_cases_of_a_switch_are_inside(code):
    found = exits({F: code})
    assert len(found.returns) == 1
    assert found[1:] == ((), (), ())


AMBIGUOUS = "4a 8b 04 f1 31 c9 ff e0 c3"
"""mov (%rcx,%r14,8),%rax; xor %ecx,%ecx; jmp *%rax: a switch, or an array of functions."""


def test_a_jump_with_more_on_the_stack_is_inside():
    assert exits({F: AMBIGUOUS}, entry_like=False) == Exits((F + 8,), (), (), ())


@pytest.mark.parametrize(
    ("functions", "why"),
    [
        ({F: AMBIGUOUS}, "is not understood"),
        ({F: "06 c3"}, "no instruction"),
        ({F: "90 90"}, "runs into another function"),
        ({F: "31 c0"}, "runs into another function"),
        ({F: "eb 01 b8 00 00 00 00 c3"}, "leads into an instruction"),
        ({F: jump("e9", F, 0x9000)}, "no function is known"),
        ({G: "c3"}, "its end is not known"),
        ({F - 1: "c3 c3"}, "no function starts there"),
        ({F: "3e c3"}, "takes no probe"),
        ({F: "e3 10 c3"}, "by the value of rcx"),
        ({F: "cb"}, "far jump"),
        ({F: "c3" * 300}, "more than 256 places"),
    ],
)
def test_what_is_not_understood_is_said(functions, why):
    if "e3 10" in next(iter(functions.values())):
        functions = functions | {F + 0x12: "c3"}
    with pytest.raises(CodeError, match=why):
        exits(functions)


def test_retpolines_are_not_followed():
    names = {G: ("__x86_indirect_thunk_rax",)}
    with pytest.raises(CodeError, match="retpoline"):
        exits({F: jump("e9", F, G), G: "c3"}, names=names)


def test_a_return_to_a_register_is_a_retpoline():
    thunk = "e8 07 00 00 00 f3 90 0f ae e8 eb f9 48 89 04 24 c3"  # mov %rax, (%rsp); ret
    with pytest.raises(CodeError, match="retpoline"):
        exits({F: thunk})
    with pytest.raises(CodeError, match="retpoline"):
        exits({F: jump("e9", F, G), G: thunk})
    thunk_of_return = "e8 07 00 00 00 f3 90 0f ae e8 eb f9 48 8d 64 24 08 c3"  # lea 8(%rsp), %rsp
    assert exits({F: thunk_of_return}).returns == (F + 17,)


@given(st.binary(min_size=1, max_size=64), st.sampled_from([True, False, None]))
def test_any_code_has_exits_or_is_refused(code, entry_like):
    try:
        found = find_exits(Code({F: code.hex()}, entry_like=entry_like), F)
    except CodeError:
        return
    places = [*found.returns, *(at for at, _ in (*found.leaving, *found.jumps))]
    assert all(F <= at < F + len(code) for at in places)


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("c3 90 90", 1),
        ("90 90 c3 c3", 3),
        ("85 ff 74 01 c3 90 c3 c3", 7),  # the branch leads behind the first return
        ("74 fe c3 c3", 3),
        ("eb 00 c3", 2),  # an unconditional jump may be a tail call
        ("ff e0 c3", 2),
        ("e8 00 00 00 00 0f 0b c3", 7),
        ("f4 c3", 1),
        ("90 06 c3", 1),  # no instruction of 64-bit mode
        ("e8 00 00", 0),
        ("", 0),
        ("90 90", 2),
    ],
)
def test_code_that_belongs_to_a_function_of_unknown_size(code, size):
    assert least_size(bytes.fromhex(code)) == size
