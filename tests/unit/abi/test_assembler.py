"""The assembler, and the disassembler against llvm-objdump."""

import re
import subprocess
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.assembler import ALU, JUMPS, R0, R1, R2, R10, Assembler, TooLongError
from purebpf.abi.disassembler import disassemble, listing
from purebpf.abi.instruction import PSEUDO_FUNC, Instruction, pack, unpack
from tests.support.builders.elf_builder import ElfBuilder

DATA = Path(__file__).parents[2] / "data"
OBJECTS = Path(purebpf.__file__).parent / "objects"


def test_constants_take_the_shortest_form():
    code = Assembler()
    for value in (0, 0x7FFFFFFF, 0x80000000, (1 << 64) - 1, -1, 1 << 63):
        code.move(R1, value)
    assert [len(list(disassemble([each]))) for each in code.finish()] == [1] * 8
    assert [each.imm for each in code.finish()] == [
        0, 0x7FFFFFFF, -0x80000000, 0, -1, -1, 0, -0x80000000,
    ]  # fmt: skip


def test_labels_lead_where_they_are_placed():
    code = Assembler()
    out = code.label()
    code.jump("==", R1, 7, out)
    code.move(R0, 1)
    code.go(out)
    code.place(out)
    code.exit()
    assert [each.offset for each in code.finish()] == [2, 0, 0, 0]


def test_the_address_of_a_function_counts_from_the_next_instruction():
    code = Assembler()
    callback = code.label()
    code.function(R2, callback)
    code.exit()
    code.place(callback)
    code.exit()
    address = code.finish()[0]
    assert (address.src, address.imm) == (PSEUDO_FUNC, 2)


def test_a_jump_has_sixteen_bits():
    code = Assembler()
    out = code.label()
    code.go(out)
    for _ in range(0x7FFF):
        code.move(R0, 0)
    code.place(out)
    code.exit()
    assert code.finish()[0].offset == 0x7FFF
    code = Assembler()
    out = code.label()
    code.go(out)
    for _ in range(0x8000):
        code.move(R0, 0)
    code.place(out)
    with pytest.raises(TooLongError):
        code.finish()


def test_a_jump_may_lead_back():
    code = Assembler()
    again = code.label()
    code.place(again)
    code.move(R0, 0)
    code.go(again)
    assert code.finish()[1].offset == -2


def test_a_label_that_was_not_placed_is_refused():
    code = Assembler()
    code.go(code.label())
    with pytest.raises(ValueError, match="instruction 0 refers to a label that was not placed"):
        code.finish()


def test_comments_stand_above_what_they_are_about():
    code = Assembler()
    code.comment("nothing")
    code.move(R0, 0)
    code.exit()
    assert list(listing(code.finish(), code.comments)) == [
        "; nothing",
        "   0: (b7) r0 = 0",
        "   1: (95) exit",
    ]


def test_unknown_opcodes_are_shown_by_their_number():
    assert list(disassemble([Instruction(0xFF, 1, 2, 3, 4)])) == [
        (0, "(ff) opcode 0xff dst=1 src=2 off=3 imm=4")
    ]


@pytest.mark.needs("llvm-objdump")
def test_llvm_reads_the_same(tmp_path):
    code = Assembler()
    out = code.label()
    code.copy(R2, R1)
    code.move(R1, 0x123456789ABCDEF0)
    for operator in ALU:
        code.alu(operator, R1, 7)
        code.alu_register(operator, R1, R2)
    for size in (1, 2, 4, 8):
        code.load(R1, R2, 16, size)
        code.store(R10, -8, R1, size)
        code.store_constant(R10, -8, 7, size)
    code.atomic_add(R10, -8, R1, 4)
    code.atomic_add(R10, -8, R1, 8)
    for operator in JUMPS:
        code.jump(operator, R1, 5, out)
        code.jump(operator, R1, 1 << 40, out)
        code.jump_register(operator, R1, R2, out)
    code.go(out)
    code.call(14)
    code.place(out)
    code.exit()
    instructions = code.finish()
    path = tmp_path / "code.o"
    builder = ElfBuilder()
    builder.section("socket", pack(instructions), flags=6)
    path.write_bytes(builder.build())
    command = ["llvm-objdump-19", "-d", "--mcpu=v4", "--no-show-raw-insn", path]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    theirs = [_normal(text) for text in re.findall(r"^ *[0-9a-f]+:\t(.*)$", shown, re.MULTILINE)]
    ours = [_normal(text.split(")", 1)[1]) for _, text in disassemble(instructions)]
    assert ours == theirs


def _of_llvm(path: Path) -> dict[tuple[str, int], str]:
    """The text of each instruction by its section and place, in instructions."""
    command = ["llvm-objdump-19", "-d", "--mcpu=v4", "--no-show-raw-insn", path]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    texts = {}
    for part in shown.split("Disassembly of section ")[1:]:
        section = part[: part.index(":\n")]
        for place, text in re.findall(r"^ *(\d+):\t(.*)$", part, re.MULTILINE):
            texts[section, int(place)] = text
    return texts


@pytest.mark.needs("llvm-objdump")
@pytest.mark.parametrize(
    "path",
    [
        *(DATA / f"{name}.bpf.o" for name in ("load_advice", "load_arena", "load_unoptimised")),
        *(DATA / f"{name}.bpf.o" for name in ("elf_big_endian", "elf_functions")),
        OBJECTS / "profile.bpf.o",
        OBJECTS / "futex.bpf.o",
    ],
    ids=lambda path: path.name,
)  # fmt: skip
def test_llvm_reads_the_same_of_what_clang_made(path):
    spec, theirs = purebpf.read_object(path), _of_llvm(path)
    for function in spec.functions.values():
        start = function.section_offset // 8
        for at, text in disassemble(unpack(function.code, spec.byteorder)):
            ours = _halves(_normal(text.split(")", 1)[1]))
            assert ours == _halves(_normal(theirs[function.section, start + at])), (function, at)


def _halves(text: str) -> str:
    """llvm calls the half that is loaded or stored w1, and prints wide constants with a sign."""
    if re.fullmatch(r"r\d = -\d+", text):
        number = int(text[5:])
        return f"{text[:5]}{number & (1 << 64) - 1}"
    return re.sub(r"\bw(\d)", r"r\1", text) if "*(" in text or "atomic" in text else text


# What llvm 19 does not read, or clang 19 does not write: the verifier's text (kernel/bpf/disasm.c).
@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (Instruction(0x06, 0, 0, 0, -3), "gotol pc-3"),
        (Instruction(0x0D, 1, 0, 0, 0), "gotox r1"),
        (Instruction(0xE5, 0, 0, 5, 0), "may_goto pc+5"),
        (Instruction(0x8D, 2, 0, 0, 0), "callx r2"),
        (Instruction(0x84, 3, 0, 0, 0), "w3 = -w3"),
        (Instruction(0xDC, 1, 0, 0, 16), "r1 = be16 r1"),
        (Instruction(0xD4, 1, 0, 0, 32), "r1 = le32 r1"),
        (Instruction(0xD7, 1, 0, 0, 64), "r1 = bswap64 r1"),
        (Instruction(0xBF, 1, 2, 8, 0), "r1 = (s8)r2"),
        (Instruction(0xBC, 1, 2, 16, 0), "w1 = (s16)w2"),
        (Instruction(0xBF, 1, 2, 1, 0x10000), "r1 = addr_space_cast(r2, 1, 0)"),
        (Instruction(0x3F, 1, 2, 1, 0), "r1 s/= r2"),
        (Instruction(0x94, 1, 0, 1, 3), "w1 s%= 3"),
        (Instruction(0x99, 1, 2, 4, 0), "r1 = *(s64 *)(r2 +4)"),
        (Instruction(0x81, 1, 2, -4, 0), "r1 = *(s32 *)(r2 -4)"),
        (Instruction(0x30, 0, 0, 0, 12), "r0 = *(u8 *)skb[12]"),
        (Instruction(0x48, 0, 7, 0, 2), "r0 = *(u16 *)skb[r7 + 2]"),
        (Instruction(0xDB, 1, 2, 8, 0x01), "r2 = atomic64_fetch_add((u64 *)(r1 +8), r2)"),
        (Instruction(0xC3, 1, 2, 8, 0xA0), "lock *(u32 *)(r1 +8) ^= r2"),
        (Instruction(0xC3, 1, 2, 8, 0xE1), "r2 = atomic_xchg((u32 *)(r1 +8), r2)"),
        (Instruction(0xDB, 1, 2, 8, 0xF1), "r0 = atomic64_cmpxchg((u64 *)(r1 +8), r0, r2)"),
        (Instruction(0xDB, 1, 2, 8, 0x100), "r1 = load_acquire((u64 *)(r2 +8))"),
        (Instruction(0xC3, 1, 2, 8, 0x110), "store_release((u32 *)(r1 +8), r2)"),
        (Instruction(0xDB, 1, 2, 8, 0x77), "opcode 0xdb dst=1 src=2 off=8 imm=119"),
        (Instruction(0xE6, 1, 2, 8, 0), "opcode 0xe6 dst=1 src=2 off=8 imm=0"),
    ],
)
def test_other_instructions_are_spelled_as_the_kernel_does(instruction, text):
    assert [*disassemble([instruction])] == [(0, f"({instruction.opcode:02x}) {text}")]


def _normal(text: str) -> str:
    """The text without what is a matter of taste: names of helpers and labels, bases of numbers."""
    text = re.sub(r" <\S*?>$| ll\b", "", text.strip())
    text = re.sub(r"(goto|gotol|call) pc", r"\1 ", text)  # the kernel says what is counted from
    text = re.sub(r"([+-]) ?(0x[0-9a-f]+|\d+)", r"\1\2", text)
    text = re.sub(r"\batomic64_", "atomic_", text)  # llvm has the width in the type alone
    text = re.sub(r"atomic_(c?m?p?xchg)\(\(u(32|64) \*\)\((.*?)\),", r"\1_\2(\3,", text)
    text = re.sub(r"call bpf_\w+#", "call ", text)
    text = re.sub(r"\bw1\b", "r1", text)  # mcpu v4 calls the half that is loaded or stored w1
    text = text.replace("call +", "call ")
    limit = 1 << 31 if text.startswith("if ") else 1 << 64  # llvm compares with a signed number

    def number(digits: re.Match[str]) -> str:
        value = int(digits[0], 16)
        return str(value - (1 << 32) if value >= limit else value)

    return re.sub(r"0x[0-9a-f]+", number, text)


def test_code_that_nothing_leads_to_is_dropped():
    code = Assembler()
    out = code.label()
    code.move(R0, 1)
    code.go(out)
    code.move(R0, 1 << 40)  # two slots that nothing leads to
    code.exit()
    code.place(out)
    code.exit()
    assert code.drop_unreachable() == {0: 0, 1: 1, 5: 2}
    assert [(each.opcode, each.offset) for each in code.finish()] == [(0xB7, 0), (5, 0), (0x95, 0)]


def test_atomic_operations_that_return_the_value_before():
    code = Assembler()
    code.fetch_add(R1, 8, R2, 8)
    code.exchange(R1, 0, R2, 4)
    code.compare_exchange(R1, 0, R2, 8)
    assert [(each.opcode, each.offset, each.imm) for each in code.finish()] == [
        (0xDB, 8, 0x01), (0xC3, 0, 0xE1), (0xDB, 0, 0xF1),
    ]  # fmt: skip


def test_single_operations_are_disassembled_as_they_are_named():
    code = Assembler()
    code.negate(R1)
    code.zero_extend(R2)
    code.swap_bytes(R1, 32)
    texts = [text for _, text in disassemble(code.finish())]
    assert texts == ["(87) r1 = -r1", "(bc) w2 = w2", "(dc) r1 = be32 r1"]
