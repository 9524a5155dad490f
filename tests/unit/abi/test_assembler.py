"""The assembler, and the disassembler against llvm-objdump."""

import re
import subprocess

import pytest

from purebpf.abi.assembler import ALU, JUMPS, R0, R1, R2, R10, Assembler, TooLongError
from purebpf.abi.disassembler import disassemble, listing
from purebpf.abi.instruction import PSEUDO_FUNC, Instruction, pack
from tests.support.builders.elf_builder import ElfBuilder


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
        "   0: (b7) r0 = 0x0",
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


def _normal(text: str) -> str:
    """The text without what is a matter of taste: names of helpers and labels, bases of numbers."""
    text = re.sub(r" <\S*?>$| ll\b", "", text.strip())
    text = re.sub(r"call bpf_\w+#", "call ", text)
    text = re.sub(r"\bw1\b", "r1", text)  # mcpu v4 calls the half that is loaded or stored w1
    return re.sub(r"0x[0-9a-f]+", lambda found: str(int(found[0], 16)), text)
