"""The commonest refusals say what helps against them, with the names of the user's C.

The logs go into pytest's report; scripts/keep_verifier_logs.py takes them out of it, for the unit
tests: each kernel has its own words.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from tests.support.programs.refused import ADVICE, SPEC, line_of

pytestmark = [
    pytest.mark.needs("bpf"),
    pytest.mark.guests_by_day("5.10", "7.2"),  # the oldest words and the newest
]

DATA = Path(__file__).parents[3] / "data"


def refusal(name: str, spec: purebpf.ObjectSpec = SPEC) -> purebpf.VerifierError:
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(spec.only(name))
    return caught.value


@pytest.mark.parametrize("program", ADVICE)
def test_a_refusal_says_what_helps(program, record_testsuite_property):
    text, advice = ADVICE[program]
    error = refusal(program)
    record_testsuite_property(f"verifier_log {program}", error.log)
    assert advice.format(line=line_of(program, text)) in error.fix
    assert error.line
    assert str(error).endswith(error.fix.rstrip("."))


def test_every_program_of_the_fixture_is_covered():
    assert SPEC.programs.keys() == ADVICE.keys()


def test_an_endless_loop_that_ends_in_a_branch_has_a_verdict():
    error = refusal("endless_branch")
    assert error.line == "infinite loop detected at insn 0"
    assert "log is empty" not in str(error)


def test_a_helper_for_the_gpl_is_named_and_so_is_the_license():
    error = refusal("unbounded_length", SPEC._replace(license="Proprietary"))
    assert error.fix == (
        "bpf_probe_read_kernel() needs a license compatible with the GPL; the object's is "
        '\'Proprietary\': write char LICENSE[] SEC("license") = "GPL";'
    )


def test_code_without_optimisation_is_recognised():
    spec = purebpf.read_object(DATA / "load_unoptimised.bpf.o")
    assert "compile with -O2" in refusal("unchecked_value", spec).fix
