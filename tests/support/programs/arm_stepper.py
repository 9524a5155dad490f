"""A program of arm64 run one instruction at a time under qemu-aarch64, with the true traces.

QEMU's user emulation serves GDB's remote protocol ("Remote Serial Protocol" in GDB's manual) on a
socket. `bl` and `blr` are calls; `ret` to the address that one left is its end.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.programs.single_step import Step

_REGISTERS = struct.Struct("<33Q")
_MOST_BYTES = 1024
"""Of memory in an answer: QEMU's packets have 4096 characters."""
_PATIENCE_S = 20


class ArmStepper:
    """Runs a static program; `stack` reads its memory between two steps.

    Args:
        folder: for the socket.
        program: linked to where it is loaded.
        begin: the function to start stepping at.
    """

    def __init__(self, folder: Path, program: Path, begin: int) -> None:
        path = folder / "gdb"
        command = ["qemu-aarch64", "-cpu", "max", "-g", str(path), str(program)]
        self._child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self._socket = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + _PATIENCE_S
        while not path.exists():
            assert time.monotonic() < deadline, "QEMU did not begin to listen"
            time.sleep(0.01)
        self._socket.connect(str(path))
        self._left = b""
        self._ask(f"Z0,{begin:x},4")
        self._ask("c")
        self._ask(f"z0,{begin:x},4")

    def _ask(self, packet: str) -> str:
        raw = packet.encode()
        self._socket.sendall(b"+$%b#%02x" % (raw, sum(raw) & 255))
        while b"#" not in self._left[:-2]:
            got = self._socket.recv(1 << 16)
            if not got:
                return ""
            self._left += got
        answer, _, rest = self._left.partition(b"#")
        self._left = rest[2:]
        return answer.lstrip(b"+").removeprefix(b"$").decode()

    def steps(self, most: int, outer: list[int]) -> Iterator[Step]:
        """Each instruction, until the program ends; `outer` is the trace from the caller on."""
        calls: list[int] = []
        is_call = is_return = False
        pc = 0
        for _ in range(most):
            before = pc
            *registers, pc = _REGISTERS.unpack(bytes.fromhex(self._ask("g")[: 33 * 16]))
            if is_call and pc != before + 4:
                calls.append(before + 4)
            elif is_return and pc in calls:
                while calls.pop() != pc:
                    pass
            yield Step(self._child.pid, pc, tuple(registers), [pc, *reversed(calls), *outer])
            word = int.from_bytes(self.stack(pc, 4), "little")
            is_call = word >> 26 == 0x25 or word & 0xFEFFF000 == 0xD63F0000
            is_return = word & 0xFFFFF01F == 0xD65F0000 or word & 0xFFFFFBFF == 0xD65F0BFF
            if not self._ask("s").startswith("T05"):
                return

    def stack(self, address: int, size: int) -> bytes:
        """The program's memory; fewer bytes where it ends."""
        data = b""
        while len(data) < size:
            wanted = min(_MOST_BYTES, size - len(data))
            answer = self._ask(f"m{address + len(data):x},{wanted:x}")
            if not answer or answer.startswith("E"):
                break
            data += bytes.fromhex(answer)
        return data

    def close(self) -> None:
        """End the program."""
        self._socket.close()
        self._child.kill()
        self._child.wait()
