"""Python frames stand where the evaluation loop ran them."""

from __future__ import annotations

from purebpf.runtimes.interpreted import InterpretedFrame
from purebpf.runtimes.merge import Fit, Home, merge


def frame(name: str, *, entry: bool = False) -> InterpretedFrame:
    return InterpretedFrame(name, "f.py", 1, 0, entry)


def merged(
    native: str, *python: InterpretedFrame, is_whole: bool = False, leaving: int = 0
) -> tuple[str, Fit]:
    """`native` has a letter for each frame: L is the loop, G a library that switches stacks, A the
    interpreter's API, C a function of its file, or of one that was compiled from Python.
    """
    is_loop, is_switch = ([letter == kind for letter in native] for kind in "LG")
    home = {"A": Home.INTERPRETER, "C": Home.COMPILED, "L": Home.INTERPRETER}
    homes = [home.get(letter, Home.NONE) for letter in native]
    found = merge(
        list(native),
        is_loop,
        python,
        is_switch=is_switch,
        is_whole=is_whole,
        homes=homes,
        leaving=leaving,
    )
    names = (each.name if isinstance(each, InterpretedFrame) else each for each in found.frames)
    return "".join(names), found.fit


def test_each_call_of_the_loop_has_its_own_frames() -> None:
    python = frame("a"), frame("b", entry=True), frame("c", entry=True)
    assert merged("xLyLz", *python) == ("xabycz", Fit.EXACT)


def test_a_loop_that_was_just_entered_has_none_yet() -> None:
    assert merged("LxLy", frame("a", entry=True)) == ("Lxay", Fit.EXACT)


def test_a_loop_that_checks_its_result_has_left_its_frame() -> None:
    """CPython 3.8 to 3.10 call `_Py_CheckFunctionResult` behind the function's end."""
    python = frame("a"), frame("b", entry=True)
    assert merged("exLyLz", *python, leaving=2) == ("exLyabz", Fit.EXACT)
    assert merged("exLyLz", *python, frame("c", entry=True), leaving=2) == ("exabycz", Fit.EXACT)
    assert merged("exLyLyLz", *python, leaving=2) == ("exabyLyLz", Fit.UNKNOWN)
    assert merged("exLyGGzLy", *python, leaving=2) == ("exaby", Fit.SWITCHED)
    assert merged("exLyLyGGzLy", *python, leaving=2) == ("exLyaby", Fit.SWITCHED)


def test_a_loop_too_many_is_of_python_frames_that_were_cut() -> None:
    assert merged("xLxLy", frame("a", entry=True)) == ("xaxLy", Fit.UNKNOWN)


def test_python_frames_too_many_are_of_native_frames_that_were_cut() -> None:
    assert merged("xLy", frame("a", entry=True), frame("b", entry=True)) == ("xayb", Fit.OUTSIDE)


def test_without_either_the_other_stays() -> None:
    assert merged("xy") == ("xy", Fit.EXACT)
    assert merged("", frame("a", entry=True)) == ("a", Fit.OUTSIDE)
    assert merged("") == ("", Fit.EXACT)


def test_a_greenlet_begins_with_its_python_frames() -> None:
    """Native frames beyond are of whoever ran there before, whole or cut."""
    python = frame("a"), frame("b", entry=True)
    assert merged("xLyGGzLy", *python) == ("xaby", Fit.SWITCHED)
    assert merged("xLyGGzLyGGzLy", *python, is_whole=True) == ("xaby", Fit.SWITCHED)
    assert merged("xLyGGz", *python) == ("xaby", Fit.SWITCHED)


def test_the_loop_of_a_greenlet_that_is_interrupted_in_it() -> None:
    """One call of the loop more than Python has: not one that was just entered."""
    assert merged("LyGGzLy", frame("a", entry=True)) == ("ay", Fit.SWITCHED)
    assert merged("LxLyGGzLy", frame("a", entry=True)) == ("Lxay", Fit.SWITCHED)


def test_a_callback_of_the_library_that_switches() -> None:
    """A trace function of greenlet runs on the stack that it was called on."""
    python = frame("a", entry=True), frame("b", entry=True)
    assert merged("xLyGGzLyGLv", *python) == ("xayGGzby", Fit.SWITCHED)


def test_calls_of_another_stack_without_a_known_library_do_not_fit() -> None:
    python = frame("a", entry=True)
    assert merged("xLyzLyL", python, is_whole=True) == ("xayzLyL", Fit.UNKNOWN)
    assert merged("GxLyL", python, is_whole=True)[1] is Fit.UNKNOWN


def test_compiled_python_has_no_loop() -> None:
    """Nuitka's functions have Python frames, and no call of the loop: native frames between two
    parts of the program leave it open which part called them.
    """
    python = frame("a", entry=True), frame("b", entry=True)
    assert merged("xyz", *python, is_whole=True) == ("abxyz", Fit.UNKNOWN)
    assert merged("xLz", *python, is_whole=True) == ("xabz", Fit.EXACT)
    assert merged("CxCz", *python, is_whole=True) == ("abCxCz", Fit.UNKNOWN)
    assert merged("LxCz", *python, is_whole=True) == ("abxCz", Fit.UNKNOWN)
    assert merged("xy", *python) == ("xyab", Fit.OUTSIDE)


def test_compiled_python_in_one_piece_has_its_place() -> None:
    """All that runs Python follows one another: what stands further in was called by it."""
    python = frame("a"), frame("b", entry=True)
    assert merged("xCACy", *python, is_whole=True) == ("xabCACy", Fit.EXACT)
    assert merged("CLCy", frame("a", entry=True), *python, is_whole=True) == ("aabCCy", Fit.EXACT)
    assert merged("xCACGy", *python, is_whole=True)[1] is Fit.UNKNOWN


def test_a_call_of_the_interpreter_by_a_library_runs_no_compiled_python() -> None:
    python = frame("a"), frame("b", entry=True)
    assert merged("AAxAxCAy", *python, is_whole=True) == ("AAxAxabCAy", Fit.EXACT)
    assert merged("AxAy", *python, is_whole=True) == ("abAxAy", Fit.UNKNOWN)


def test_a_function_of_php_may_precede_its_call_of_the_loop() -> None:
    frames = [frame("inner", entry=True), frame("outer", entry=True)]
    found = merge(
        ["engine", "loop", "start"], [False, True, False], frames, is_whole=True, may_precede=True
    )
    assert found.fit is Fit.EXACT
    assert found.frames == [frames[0], "engine", frames[1], "start"]
