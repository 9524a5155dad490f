"""Refusals of the kernel that belong to a place in the script."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.errors import AttachError, NotSupportedError, PurebpfError, VerifierError
from purebpf.observe.script.unsafe_return import UnsafeReturnError
from purebpf.script import tree
from purebpf.script.compilation import Compilation
from purebpf.script.point import Point
from purebpf.script.script_error import ScriptError
from purebpf.script.unit import Unit

__all__ = ["judge_refused_probe", "place_load_refusal", "place_refused_probe"]

_NOT_HERE = "helper call is not allowed in probe"
"""The verifier's message for bpf_d_path() in a function that may hold the locks that it takes."""


def place_load_refusal(error: VerifierError, units: Iterable[Unit]) -> ScriptError | None:
    """Return the error of path() in a function where the kernel does not allow it, else None."""
    if _NOT_HERE not in error.line:
        return None
    for unit in units:
        if unit.program_name != error.program:
            continue
        for node in tree.walk(unit.probe):
            if isinstance(node, tree.Call) and node.name == "path":
                hint = "the kernel has a list of functions where it is: security_file_open, "
                hint += "filp_close, vfs_truncate, vfs_fallocate, dentry_open, vfs_getattr, ..."
                message = "helper bpf_d_path not allowed in probe"
                return ScriptError(message, node.start, node.end, hint)
    return None


def judge_refused_probe(
    error: AttachError | NotSupportedError, point: Point, compilation: Compilation
) -> AttachError | NotSupportedError:
    """Return the reason why a probe is left out.

    Raises:
        ScriptError: a kprobe that --unsafe tries is refused.
        AttachError, NotSupportedError: the script may not run without the probe.
    """
    if isinstance(error, UnsafeReturnError):
        return error
    if point.kind not in ("kprobe", "kretprobe"):
        raise error
    if compilation.config.texts["missing_probes"] != "error":
        return error
    if compilation.settings.is_unsafe:
        raise place_refused_probe(error, point, compilation.units) from error
    raise error


def place_refused_probe(error: PurebpfError, point: Point, units: Iterable[Unit]) -> ScriptError:
    """Return the error of a probe that --unsafe tries although nothing says that it exists."""
    points = next(unit.probe.points for unit in units if unit.point is point)
    message = f"Unable to attach probe: {point.name}"
    return ScriptError(message, points[0].start, points[-1].end, str(error))
