"""Python frames stand where the evaluation loop ran them."""

from __future__ import annotations

from purebpf.runtimes.cpython.frames import PythonFrame
from purebpf.runtimes.cpython.merge import merge


def frame(name: str, *, entry: bool = False) -> PythonFrame:
    return PythonFrame(name, "f.py", 1, 0, entry)


def merged(native: str, *python: PythonFrame) -> tuple[str, bool]:
    """`native` has a letter for each frame, L for the loop."""
    found = merge(list(native), [letter == "L" for letter in native], python)
    names = (each.name if isinstance(each, PythonFrame) else each for each in found.frames)
    return "".join(names), found.is_exact


def test_each_call_of_the_loop_has_its_own_frames() -> None:
    python = frame("a"), frame("b", entry=True), frame("c", entry=True)
    assert merged("xLyLz", *python) == ("xabycz", True)


def test_a_loop_that_was_just_entered_has_none_yet() -> None:
    assert merged("LxLy", frame("a", entry=True)) == ("Lxay", True)


def test_a_loop_too_many_is_of_python_frames_that_were_cut() -> None:
    assert merged("xLxLy", frame("a", entry=True)) == ("xaxLy", False)


def test_python_frames_too_many_are_of_native_frames_that_were_cut() -> None:
    assert merged("xLy", frame("a", entry=True), frame("b", entry=True)) == ("xayb", False)


def test_without_either_the_other_stays() -> None:
    assert merged("xy") == ("xy", True)
    assert merged("", frame("a", entry=True)) == ("a", False)
    assert merged("") == ("", True)
