"""What the recorder says at its end."""

from __future__ import annotations

from purebpf.tools.record.__main__ import paragraphs
from purebpf.tools.record.loss import Recorded, losses, remarks

WHOLE = Recorded("perf.data", 1024, 98, 100, 3, 0, 0, 0)


def test_without_loss_every_count_is_there() -> None:
    assert [*remarks(WHOLE), *paragraphs(WHOLE)] == [
        "perf.data: 98 samples, 1024 bytes",
        (
            "loss: expected=100 seen=98 ring_lost=0 throttled=0 sideband_lost=0 undecided=0 "
            "children_missed=0 rejected=0"
        ),
    ]
    assert not losses(WHOLE).any


def test_what_a_filter_rejects_was_seen() -> None:
    found = WHOLE._replace(samples=40, rejected=(("cycles", (("pid == 1", 50), ("cpu == 0", 9))),))
    said = [*remarks(found), *paragraphs(found)]
    assert said[1:3] == [
        "filter: cycles: 50 rejected by pid == 1",
        "filter: cycles: 9 rejected by cpu == 0",
    ]
    assert said[3].startswith("loss: expected=100 seen=99 ")
    assert said[3].endswith(" rejected=59")
    assert not losses(found).any


def test_each_loss_is_explained() -> None:
    found = WHOLE._replace(
        size=50 << 20, samples=50, lost=7, throttled=1, side_band_lost=2, undecided=3
    )
    said = "\n".join([*remarks(found), *paragraphs(found)])
    for words in (
        "50 samples, 50 MiB",
        "missed: 50 of 100",
        "ring_lost: 7",
        "throttled: 1",
        "sideband_lost: 2",
        "undecided: 3",
    ):
        assert words in said
    assert losses(found).any


def test_a_count_that_cannot_be_known_is_a_question_mark() -> None:
    assert any("expected=? seen=98" in line for line in paragraphs(WHOLE._replace(due=None)))


def test_records_of_a_program_that_found_no_room_are_a_loss() -> None:
    found = WHOLE._replace(samples=40, program="mine", program_dropped=60, records=100)
    said = [*remarks(found), *paragraphs(found)]
    assert said[1] == "program mine: 60 samples dropped, 100 records"
    assert "seen=100 " in said[2]
    assert "records_lost=0" in said[2]
    assert not losses(found).any
    assert "records_lost: 1" in "\n".join(paragraphs(found._replace(records_lost=1)))
    assert losses(found._replace(records_lost=1)).any
