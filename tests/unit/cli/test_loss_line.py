"""The loss line and what follows it."""

from __future__ import annotations

from purebpf.cli.loss import paragraphs, words_of_loss, words_of_profile
from purebpf.results import Cause, Labels, Loss, Profile
from purebpf.results.model.profile import Marks
from purebpf.results.model.stack_end import StackEnd
from purebpf.symbols.frame import Address, Frame, Reason, Unknown

FRAME = Frame("f", 0, "/bin/x", Address(1), "user")


def nameless(reason: Reason, module: str = "") -> Unknown:
    return Unknown(reason, module, Address(1), "user")


def test_zero_is_said() -> None:
    profile = Profile(loss=Loss(490, 490, causes=(Cause("map_full", 0, "never shown"),)))
    assert paragraphs(profile) == [
        "loss: expected=490 seen=490 map_full=0 unnamed=0.0% unknown=0.0%"
    ]


def test_what_cannot_be_known_is_a_question_mark() -> None:
    line = "loss: expected=? seen=7 unnamed=0.0% unknown=0.0%"
    assert paragraphs(Profile(loss=Loss(None, 7))) == [line]


def test_functions_without_a_symbol_are_not_unknown() -> None:
    profile = Profile()
    start = Frame("lib.so!0x40", 3, "/opt/lib.so", Address(1), "user")
    profile.add((FRAME, start, start), (), 10, Labels("app", 1))
    profile.add((start,), (), 10, Labels("app", 1))
    assert paragraphs(profile) == ["loss: expected=? seen=0 unnamed=75.0% unknown=0.0%"]


def test_each_loss_gets_its_paragraph() -> None:
    causes = (Cause("map_full", 3, "3 samples; raise it"), Cause("busy", 0, "no"))
    profile = Profile(loss=Loss(100, 90, 2, causes))
    _, missed, full = paragraphs(profile)
    assert missed.startswith("  missed: 10 of 100 samples never arrived. ")
    assert full == "  map_full: 3 samples; raise it"


def test_a_shortfall_within_the_tolerance_needs_no_word() -> None:
    assert len(paragraphs(Profile(loss=Loss(100, 98, 2)))) == 1


def test_reasons_are_ranked_and_the_tail_is_summed() -> None:
    profile = Profile()
    stacks = [
        (FRAME, 60),
        (nameless(Reason.STRIPPED, "/opt/lib/a.so"), 20),
        (nameless(Reason.EXITED), 9),
        (nameless(Reason.UNMAPPED), 5),
        (nameless(Reason.ANONYMOUS), 3),
        (nameless(Reason.NOT_FOUND, "/b"), 2),
        (nameless(Reason.NOT_ELF, "/c"), 1),
    ]
    for entry, weight in stacks:
        profile.add((entry,), (), weight, Labels("app", 1))
    line, reasons = paragraphs(profile)
    assert line.endswith("unknown=40.0%")
    assert reasons == (
        f"  unknown: 20.0% {Reason.STRIPPED} [a.so]; 9.0% {Reason.EXITED}; "
        f"5.0% {Reason.UNMAPPED}; 3.0% {Reason.ANONYMOUS}; 3.0% for 2 other reasons"
    )


def test_a_module_cannot_move_the_cursor() -> None:
    profile = Profile()
    entry = nameless(Reason.STRIPPED, "/tmp/\x1b[31mred\n")
    profile.add((entry,), (), 1, Labels("app", 1))
    assert paragraphs(profile)[1] == f"  unknown: 100.0% {Reason.STRIPPED} [?[31mred?]"


def test_in_words_nothing_is_said_once() -> None:
    profile = Profile(loss=Loss(490, 490, causes=(Cause("map_full", 0, "never shown"),)))
    assert words_of_profile(profile) == ["lost: nothing"]


def test_in_words_cut_stacks_are_a_loss_with_its_reasons() -> None:
    profile = Profile(loss=Loss(100, 100), about={"call_graph": "tables"})
    for cut, weight in (("", 75), ("copy_lost", 20), ("read_fault", 5)):
        marks = Marks(end=StackEnd(cut=cut))
        profile.add((FRAME,), (), weight, Labels("app", 1), marks=marks)
    assert words_of_profile(profile) == [
        "user stacks: 75 % whole, 25 % cut",
        "lost: callers in 25 % of the user stacks (copy_lost, read_fault)",
    ]


def test_in_words_it_is_not_known_what_frame_pointers_lose() -> None:
    profile = Profile(loss=Loss(10, 10), about={"call_graph": "fp"})
    marks = Marks(end=StackEnd(cut="unverified"))
    profile.add((FRAME,), (), 10, Labels("app", 1), marks=marks)
    assert words_of_profile(profile)[-1] == "lost: nothing"


def test_in_words_notes_are_left_out() -> None:
    causes = (
        Cause("switches_missed", 22, "22 switches", is_note=True),
        Cause("stacks_lost", 12, "12 stacks (table full: --stack-storage-size 32768)"),
    )
    assert words_of_loss(Loss(causes=causes), "samples") == [
        "lost: 12 stacks (table full: --stack-storage-size 32768)"
    ]
    assert not Loss(causes=causes[:1]).any
    assert Loss(causes=causes).any


def test_in_words_functions_without_a_symbol_are_unnamed() -> None:
    profile = Profile()
    profile.add((FRAME,), (), 3, Labels("app", 1))
    start = "a.so!0x1c340"
    profile.add((Frame(start, 4, "/opt/lib/a.so", Address(1), "user"),), (), 1, Labels("app", 1))
    assert words_of_profile(profile)[0] == (
        "25 % of frames unnamed: functions without a symbol (shown as FILE!0x1c340)"
    )


def test_in_words_the_share_without_names_has_its_reasons() -> None:
    profile = Profile()
    stacks = [
        (FRAME, 50),
        (nameless(Reason.STRIPPED, "/opt/lib/a.so"), 20),
        (nameless(Reason.STRIPPED, "/opt/lib/b.so"), 10),
        (nameless(Reason.STRIPPED, "/opt/lib/c.so"), 5),
        (nameless(Reason.EXITED), 9),
        (nameless(Reason.UNMAPPED), 6),
    ]
    for entry, weight in stacks:
        profile.add((entry,), (), weight, Labels("app", 1))
    profile.hints = ["install them"]
    assert words_of_profile(profile) == [
        (
            f"50 % of frames unnamed: {Reason.STRIPPED} [a.so, b.so and 1 more]; {Reason.EXITED}; "
            "1 other reason (-v)"
        ),
        "  -> install them",
        "lost: nothing",
    ]
