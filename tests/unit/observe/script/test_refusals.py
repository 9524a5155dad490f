"""Refusals of the kernel that belong to a place in the script."""

from __future__ import annotations

import errno

from purebpf.errors import AttachError, VerifierError
from purebpf.observe.script.refusals import place_load_refusal, place_refused_probe
from purebpf.script.compilation import compile_script
from purebpf.script.host import NoHost
from purebpf.script.parser import parse
from purebpf.script.point import Point
from purebpf.script.unit import Unit

TEXT = 'fentry:vfs_read { print("a"); print(path(args.file.f_path)); print("b"); }'
LINE = "helper call is not allowed in probe"


def unit_of(text: str, name: str) -> Unit:
    """Return a unit whose types are not known."""
    return Unit(0, Point("fentry", name, "fentry/vfs_read"), parse(text).probes[0])


def test_path_in_a_function_where_the_kernel_does_not_allow_it_is_shown() -> None:
    unit = unit_of(TEXT, "fentry:vfs_read")
    error = place_load_refusal(VerifierError("fentry_vfs_read_1", errno.EINVAL, line=LINE), [unit])
    assert error is not None
    assert error.render(TEXT, "stdin").splitlines()[:3] == [
        "stdin:1:37-59: ERROR: helper bpf_d_path not allowed in probe",
        TEXT,
        f"{'':36}~~~~~~~~~~~~~~~~~~~~~~",
    ]


def test_other_refusals_of_the_verifier_stay_as_they_are() -> None:
    unit = unit_of(TEXT, "fentry:vfs_read")
    other = VerifierError("fentry_vfs_read_1", errno.EINVAL, line="invalid mem access")
    assert place_load_refusal(other, [unit]) is None
    elsewhere = VerifierError("fentry_vfs_write_2", errno.EINVAL, line=LINE)
    assert place_load_refusal(elsewhere, [unit]) is None


def test_a_probe_that_was_forced_is_named_by_its_address() -> None:
    text = "kprobe:0x12345678 { }"
    units = compile_script(text, NoHost()).units
    error = place_refused_probe(
        AttachError("kprobe", errno.ENOENT, "kprobe:0x12345678"), units[0].point, units
    )
    assert error.render(text, "stdin").splitlines()[0] == (
        "stdin:1:1-18: ERROR: Unable to attach probe: kprobe:305419896"
    )
