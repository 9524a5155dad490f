"""Write down the registers, the stack and the true stack trace at instructions of a small program.

    python scripts/freeze_stacks.py       # tests/data/unwind/frozen-{gcc,clang}{,.json}

Builds tests/data/unwind/frozen.c, runs it by single steps, and keeps the program and the state when
each of its addresses is reached first: tests that need neither a compiler nor ptrace(2). What they
say stays true for the programs kept beside them; run this again only to add to them. x86_64.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.programs.single_step import Stepper  # noqa: E402 - the tree is on the path now

FOLDER = ROOT / "tests/data/unwind"
FLAGS = ("-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-static", "-nostdlib")
LINK = ("-Wl,-z,noseparate-code", "-Wl,--eh-frame-hdr", "-Wl,--build-id=none", "-s")
SP = 7


def main() -> None:
    """Build, run, write."""
    for compiler, name in (("gcc", "frozen-gcc"), ("clang-19", "frozen-clang")):
        program = FOLDER / name
        command = [compiler, *FLAGS, "-fno-stack-protector", *LINK, "-o", str(program)]
        subprocess.run([*command, str(FOLDER / "frozen.c")], check=True)
        stepper = Stepper(str(program))
        seen: set[int] = set()
        rows = []
        top = 0
        try:
            for step in stepper.steps(100_000):
                top = top or step.registers[SP]
                if step.pc in seen:
                    continue
                seen.add(step.pc)
                stack = stepper.stack(step.registers[SP], top - step.registers[SP] + 8)
                rows.append([step.pc, step.registers, stack.hex(), step.truth])
        finally:
            stepper.close()
        text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        (FOLDER / f"{name}.json").write_text(f"[{text}]\n")
        print(f"{name}: {len(rows)} addresses")


if __name__ == "__main__":
    main()
