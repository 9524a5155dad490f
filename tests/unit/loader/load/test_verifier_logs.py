"""Advice by the words of each kernel of the matrix: logs that its verifier wrote.

scripts/keep_verifier_logs.py wrote the files.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from purebpf.errors import KernelError, VerifierError
from purebpf.loader.load.load_call import Outcome
from purebpf.loader.load.load_refusal import explain_refusal
from purebpf.relocate.link import Linker
from tests.support.programs.refused import ADVICE, SPEC, line_of

LOGS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[3] / "data" / "verifier_logs").glob("*.json"))
}
LINKER = Linker(SPEC, [])


def test_there_are_logs_of_old_and_new_kernels() -> None:
    assert {"5.10", "6.1", "6.12", "6.18"} <= LOGS.keys()
    for logs in LOGS.values():
        assert logs.keys() <= ADVICE.keys()
        assert len(logs) >= len(ADVICE) - 2


@pytest.mark.parametrize(
    ("kernel", "program"), [(kernel, program) for kernel, logs in LOGS.items() for program in logs]
)
def test_a_refusal_says_what_helps(kernel: str, program: str) -> None:
    log = LOGS[kernel][program]
    refused = Outcome(KernelError("BPF_PROG_LOAD", errno.EACCES), log)
    error = explain_refusal(SPEC.programs[program], LINKER.link(program), refused, SPEC, "")
    assert isinstance(error, VerifierError)
    text, advice = ADVICE[program]
    assert advice.format(line=line_of(program, text)) in error.fix
    assert error.line
