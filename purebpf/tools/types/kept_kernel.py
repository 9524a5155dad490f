"""The data that kernel code touches, as earlier runs of this boot found it.

An answer depends on the code of its function, which the kernel patches as it runs, on the functions
that it calls, and on the types. So answers are kept for one boot, one kernel with these modules,
its BTF, and the version of the code that answers; and each only as long as its function has the
same bytes. Only the user who wrote them can read them: they have addresses of the kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from purebpf.dataflow.kernel_code import Span
from purebpf.dataflow.slab_evidence import Verdict
from purebpf.dataflow.stored import Answer, read_answers, write_answers
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.syscall import proc
from purebpf.tools.sampleip.slab_objects import SlabObject
from purebpf.tools.types.answer_file import MOST_ADDRESSES, AnswerFile, code_version

__all__ = ["KeptKernel", "Weighed"]

_NOTHING = ""
_ADDRESS = 5
"""The column of /proc/modules with the address of a module."""

Weighed = tuple[Answer, Verdict]
_Evidence = tuple[int, str, int, int]


class KeptKernel:
    """Answers by address in the kernel itself. Nothing raises.

    Args:
        is_precise: the sampled event points at the instruction that caused it.
        span: returns the function of an address; None: it has none, or a module has it.
        read: returns the bytes of code by address and size, those that answers are found by.
        directory: where the files are; None: where the user's caches are.
    """

    def __init__(
        self,
        *,
        is_precise: bool,
        span: Callable[[int], Span | None],
        read: Callable[[int, int], bytes],
        directory: str | None = None,
    ) -> None:
        self._span, self._read = span, read
        self._file = AnswerFile(_key(is_precise=is_precise), directory)
        self._codes: dict[int, str] = {}
        self._answers: dict[int, Answer] = {}
        self._registers: dict[int, str] = {}
        self._weighed: dict[_Evidence, Weighed] = {}
        self._is_same: dict[int, bool] = {}
        self._has_new = False
        stored = self._file.load(_read_stored)
        if stored is not None:
            self._codes, self._answers, self._registers, self._weighed = stored

    def get(self, address: int) -> Answer | None:
        """Return the answer for an address; None: not kept, or its function has changed since."""
        answer = self._answers.get(address)
        return answer if answer is not None and self._holds(address) else None

    def weighed(
        self, address: int, answer: Answer, objects: Mapping[str, SlabObject]
    ) -> Weighed | None:
        """Return an answer as slab objects have changed it; None: not kept."""
        register = self._registers.get(address)
        if register is None or not self._holds(address):
            return None
        found = objects.get(register)
        if found is None:
            return answer, Verdict.NONE
        return self._weighed.get((address, *found))

    def _holds(self, address: int) -> bool:
        """Return True if the function of an address is the one that its answers are of."""
        span = self._span(address)
        if span is None:
            return False
        same = self._is_same.get(span.start)
        if same is None:
            same = self._codes.get(span.start) == self._code(span)
            self._is_same[span.start] = same
            if not same:
                self._forget(span)
        return same

    def _code(self, span: Span) -> str:
        """Return a name for the bytes of a function; "" if they cannot be read."""
        code = self._read(span.start, span.end - span.start)
        if len(code) != span.end - span.start:
            return _NOTHING
        digest = hashlib.sha256(f"{span.start} {span.end} {span.name} ".encode())
        digest.update(code)
        return digest.hexdigest()

    def _forget(self, span: Span) -> None:
        inside = range(span.start, span.end)
        self._codes.pop(span.start, None)
        self._answers = {at: one for at, one in self._answers.items() if at not in inside}
        self._registers = {at: one for at, one in self._registers.items() if at not in inside}
        self._weighed = {at: one for at, one in self._weighed.items() if at[0] not in inside}

    def add(self, address: int, answer: Answer) -> None:
        """Note an answer."""
        if len(self._answers) < MOST_ADDRESSES and self._begin(address):
            self._answers[address] = answer

    def add_weighed(
        self, address: int, register: str, found: SlabObject | None, weighed: Weighed
    ) -> None:
        """Note a judgement.

        Args:
            address: of the sample.
            register: the one that the judgement depends on; "": it depends on none.
            found: the object that this register led to.
            weighed: the judgement.
        """
        if len(self._weighed) < MOST_ADDRESSES and self._begin(address):
            self._registers[address] = register
            if found is not None:
                self._weighed[address, *found] = weighed

    def _begin(self, address: int) -> bool:
        """Return True if answers about a function can be kept."""
        span = self._span(address) if self._file.key else None
        if span is None:
            return False
        if not self._holds(address):
            code = self._code(span)
            if not code:
                return False
            self._codes[span.start] = code
            self._is_same[span.start] = True
        self._has_new = True
        return True

    def save(self) -> None:
        """Write the answers for other runs, if some are new."""
        if not self._has_new:
            return
        self._has_new = False
        numbers: dict[int, int] = {}
        rows: dict[int, Answer] = {}

        def number(answer: Answer) -> int:
            found = numbers.setdefault(id(answer), len(numbers))
            rows[found] = answer
            return found

        kernel = {at: number(answer) for at, answer in self._answers.items()}
        weighed = [
            (*evidence, number(answer), verdict.value)
            for evidence, (answer, verdict) in self._weighed.items()
        ]
        stored: dict[str, Any] = write_answers(rows)
        stored |= {"codes": self._codes, "kernel": kernel, "registers": self._registers}
        self._file.save(stored | {"weighed": weighed})


def _read_stored(
    stored: dict[str, Any],
) -> tuple[dict[int, str], dict[int, Answer], dict[int, str], dict[_Evidence, Weighed]]:
    """Return codes, answers, registers and judgements."""
    found = read_answers(stored)
    weighed = {
        (int(at), str(cache), int(size), int(offset)): (found[number], Verdict(verdict))
        for at, cache, size, offset, number, verdict in stored["weighed"]
    }
    return (
        {int(start): str(code) for start, code in stored["codes"].items()},
        {int(at): found[number] for at, number in stored["kernel"].items()},
        {int(at): str(name) for at, name in stored["registers"].items()},
        weighed,
    )


def _types() -> bytes | memoryview:
    """Return the BTF of this kernel."""
    return kernel_btf().data


def _key(*, is_precise: bool) -> str:
    """Return a name for this boot, this kernel with its modules, and our code; "": not known."""
    boot = proc.sysctl("kernel.random.boot_id") or ""
    if not boot:
        return ""
    modules = sorted(
        (words[0], words[1], words[_ADDRESS])
        for words in (line.split() for line in proc.modules().splitlines())
        if len(words) > _ADDRESS
    )
    digest = hashlib.sha256(f"{boot} {is_precise} {code_version()} {modules} ".encode())
    digest.update(_types())
    return f"kernel-{digest.hexdigest()[:32]}"
