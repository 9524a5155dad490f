"""How many types of `purebpf types` are wrong about kernel code whose accesses are known.

    python bench/known_accesses.py [--functions 900] [--seed 1]

Writes C functions with one access of one member on each line, compiles them with gcc -O2 -g as the
kernel is compiled, makes BTF of their types (pahole), and lets the types follow from BTF alone. The
line of an instruction, from DWARF, says which member it touches. Prints the claims, how many of
them are wrong, and the wrong ones. Needs gcc, pahole, objcopy and the extra purebpf[types].
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).parents[1]))

from purebpf.btf.types.parse import Btf
from purebpf.dataflow.btf_types import BtfTypes
from purebpf.dataflow.claims import Claim
from purebpf.dataflow.kernel_code import KernelCode, Span
from purebpf.dataflow.layout import SEVERAL

STRUCTS, MEMBERS, STEPS = 40, 12, 24
_WIDTHS = ("unsigned long", "unsigned int", "unsigned char", "unsigned short")
_FLAGS = (
    *("-O2", "-g", "-fno-strict-aliasing", "-mno-red-zone", "-fno-pic", "-mcmodel=kernel"),
    *("-mno-sse", "-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-ffreestanding"),
)
_HEAD = """\
struct node { struct node *next, *prev; };
#define R(place) (*(volatile __typeof__(place) *)&(place))
#define START(type) __builtin_offsetof(struct type, node)
#define OUTER(pointer, type) ((struct type *)((char *)(pointer) - START(type)))
"""
_OTHER = """\
void *made(long key) { return (void *)key; }
void used(void *p) { (void)p; }
"""


class Source:
    """The text of a program, and the member that each of its lines touches."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.lines = _HEAD.splitlines()
        self.members: dict[int, tuple[str, str]] = {}
        self.pointers: dict[int, str] = {}
        self._structs: list[list[tuple[str, str, int]]] = []  # name, type, struct behind it
        for number in range(STRUCTS):
            self._add_struct(number)

    def _add_struct(self, number: int) -> None:
        members = []
        for place in range(MEMBERS):
            target = self._random.randrange(STRUCTS) if self._random.random() < 0.4 else -1
            of = f"struct s{target} *" if target >= 0 else self._random.choice(_WIDTHS)
            members.append((f"m{place}", of, target))
        self._structs.append(members)
        place = self._random.randrange(MEMBERS)
        self.lines.append(f"struct s{number} {{")
        for at, (name, of, _) in enumerate(members):
            self.lines += ["\tstruct node node;"] * (at == place) + [f"\t{of} {name};"]
        self.lines.append("};")

    def _touch(self, text: str, struct: int, member: str) -> None:
        self.lines.append(text)
        self.members[len(self.lines)] = f"s{struct}", member
        of = next(of for name, of, _ in self._structs[struct] if name == member)
        self.pointers[len(self.lines)] = of.removeprefix("struct ")

    def add_functions(self, count: int) -> None:
        """Add functions that take pointers, follow members, call others and leave structs."""
        for number in range(STRUCTS):
            self.lines += [
                f"__attribute__((__noinline__)) struct s{number} *get{number}(long key)",
                "{ extern void *made(long); return made(key); }",
                f"__attribute__((__noinline__)) void put{number}(struct s{number} *p)",
                "{ extern void used(void *); used(p); }",
            ]
        for number in range(count):
            self._add_function(number)

    def _add_function(self, number: int) -> None:
        choose = self._random
        first, second, third = (choose.randrange(STRUCTS) for _ in range(3))
        self.lines += [
            f"long f{number}(struct s{first} *a, struct s{second} *b, long n, struct node *c)",
            "{",
            f"\tstruct s{third} *o = OUTER(c, s{third});",
            "\tlong t = 0;",
        ]
        known = {"a": first, "b": second, "o": third}
        depth = 0
        for step in range(STEPS):
            variable = choose.choice(list(known))
            struct = known[variable]
            name, _, target = choose.choice(self._structs[struct])
            kind = choose.random()
            if target >= 0 and kind < 0.8 and not depth:
                self._touch(f"\tstruct s{target} *v{step} = R({variable}->{name});", struct, name)
                known[f"v{step}"] = target
            elif kind < 0.1 and not depth:
                self.lines.append(f"\tstruct s{struct} *v{step} = get{struct}(t);")
                known[f"v{step}"] = struct
            elif kind < 0.2:
                self.lines.append(f"\tput{struct}({variable});")
            elif kind < 0.3 and not depth:
                self.lines.append("\tif (n & " + str(1 << step) + ") {")
                depth = 1
            elif kind < 0.4 and depth:
                self.lines.append("\t}")
                depth = 0
            elif kind < 0.6 and target < 0:
                self._touch(f"\tR({variable}->{name}) = n + {step};", struct, name)
            else:
                self._touch(f"\tt += (long)R({variable}->{name});", struct, name)
        self.lines += ["\t}"] * depth + ["\treturn t;", "}"]


def lines_of(elf: ELFFile) -> Iterator[tuple[int, int]]:
    """Yield addresses and the line of the code that begins there."""
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        for entry in program.get_entries() if program is not None else ():
            if entry.state is not None:
                yield entry.state.address, entry.state.line


def compare(source: Source, program: Path, types: Path) -> tuple[Counter[str], list[str]]:
    """Compare each claim about a program with the line of its instruction."""
    with program.open("rb") as stream:
        elf = ELFFile(stream)
        text: Any = elf.get_section_by_name(".text")
        code, start = text.data(), int(text["sh_addr"])
        table: Any = elf.get_section_by_name(".symtab")
        spans = sorted(
            Span(s["st_value"], s["st_value"] + s["st_size"], s.name)
            for s in table.iter_symbols()
            if s["st_info"]["type"] == "STT_FUNC" and s["st_size"]
        )
        places = sorted(dict(lines_of(elf)).items())  # of several lines, the last has the code
    starts = [span.start for span in spans]

    def function(address: int) -> Span | None:
        number = bisect_right(starts, address) - 1
        return spans[number] if number >= 0 and address < spans[number].end else None

    def read(address: int, size: int) -> bytes:
        return bytes(code[address - start :][:size])

    kernel = KernelCode(BtfTypes(Btf(types.read_bytes())), function, read, None)
    counts, wrong = Counter[str](), []
    for span in spans:
        flow = kernel.flow(span.start)
        for instruction in flow.code.instructions if flow is not None else ():
            number = bisect_right(places, (instruction.ip, 1 << 30)) - 1
            line = places[number][1]
            member = source.members.get(line)
            name, claim = kernel.claim(instruction.ip, is_precise=True)
            if isinstance(claim, Claim) and member is not None:
                is_right = claim.name == member[0] and claim.member in (member[1], SEVERAL)
                is_right |= not claim.member and claim.name == source.pointers[line]
                counts["right" if is_right else "wrong"] += 1
                if not is_right:
                    words = f"{claim.name}.{claim.member}, not {member}"
                    wrong.append(f"{name}: {instruction}: {words}")
            elif not isinstance(claim, Claim):
                counts[str(getattr(claim, "value", claim))] += 1
            else:
                counts["claims about lines without a member"] += 1
    return counts, wrong


def main(options: argparse.Namespace) -> int:
    """Return 1 if a claim is wrong."""
    source = Source(options.seed)
    source.add_functions(options.functions)
    with tempfile.TemporaryDirectory() as folder:
        file, program, types = (Path(folder) / name for name in ("a.c", "a", "a.btf"))
        file.write_text("\n".join(source.lines) + "\n")
        other = Path(folder) / "b.c"
        other.write_text(_OTHER)
        linked = ["-nostdlib", "-static", "-no-pie", "-Wl,-e,0", "-Wl,-Ttext=0x1000000"]
        subprocess.run(["gcc", *_FLAGS, *linked, "-o", program, file, other], check=True)
        subprocess.run(["pahole", "-J", program], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".BTF", "--set-section-flags",
                        ".BTF=alloc", program, types], check=True)  # fmt: skip
        counts, wrong = compare(source, program, types)
    for what, count in counts.most_common():
        print(f"{count:7} {what}")
    print("\n".join(wrong[: options.show]))
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--functions", type=int, default=900)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    sys.exit(main(parser.parse_args()))
