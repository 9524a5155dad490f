"""A user stack that is not whole does not look whole, in any format."""

from __future__ import annotations

import gzip
import json

import pytest

from purebpf.cli.user_stacks import describe
from purebpf.results import Labels, Profile
from purebpf.results.build.stored_stacks import Stacks, count_truncated
from purebpf.results.formats import json as json_format
from purebpf.results.formats import pprof, pprof_reader, writer
from purebpf.results.model.profile import Marks
from purebpf.results.model.spelling import spell_location
from purebpf.results.model.stack_end import WHOLE, StackEnd, end_of, root_frame
from purebpf.results.shape.page_data import head
from purebpf.results.shape.stack_ends import stack_ends
from purebpf.symbols.frame import Address, Frame
from purebpf.unwind.reason import Reason


class Names:
    """Names that say which address they are of."""

    def __init__(self, root: str = "f1") -> None:
        self._root = root

    def kernel_stack(self, addresses):
        return self.user_stack(0, addresses)

    def user_stack(self, pid, addresses, comm=None):
        *leaves, _ = addresses
        names = [f"f{address}" for address in leaves] + [self._root]
        return [
            Frame(name, 1, "/bin/x", Address(at), "user")
            for name, at in zip(names, addresses, strict=True)
        ]


def names_of(stack):
    return [entry.name for entry in stack or ()]


@pytest.mark.parametrize(
    ("reason", "root", "shown"),
    [
        (Reason.COMPLETE, "main", None),
        (Reason.FINISHED, "main", None),
        (Reason.FP_GUESS, "main", None),
        (Reason.NO_UNWIND_INFO, "_start", "[no unwind info]"),
        (Reason.UNKNOWN_MAPPING, "_start", "[unknown mapping]"),
        (Reason.READ_FAULT, "_start", "[unreadable]"),
        (Reason.COPY_REFUSED, "_start", "[cut]"),
        (Reason.PROCESS_GONE, "_start", "[cut]"),
        (Reason.TOO_DEEP, "_start", "[truncated]"),
        (Reason.FRAME_POINTERS, "main", "[unverified]"),
        (Reason.FRAME_POINTERS, "_start", None),
        (Reason.FRAME_POINTERS, "clone3", None),
        (Reason.FRAME_POINTERS, "runtime.goexit.abi0", None),
        (Reason.FRAME_POINTERS, "__libc_start_main@@GLIBC_2.34", None),
        (Reason.COMPAT32, "main", "[unverified]"),
    ],
)
def test_a_cut_stack_has_a_frame_at_its_root(reason: Reason, root: str, shown: str | None) -> None:
    stacks = Stacks({20: [2, 1]}, Names(root), {20: (reason, 0)})
    stack = stacks.user(20, 1, "x")
    assert names_of(stack) == ["f2", root] + [shown] * (shown is not None)
    assert bool(stacks.end(20, 1, "x").cut) == (shown is not None)
    assert stacks.user(20, 1, "x") is stack


def test_a_cut_stack_without_a_frame_that_is_shown_is_cut() -> None:
    """As one that ends at the first frame, a stub of a JVM."""

    class Hidden(Names):
        def user_stack(self, pid, addresses, comm=None):
            return []

    stacks = Stacks({20: [1]}, Hidden(), {20: (Reason.NO_UNWIND_INFO, 0)})
    assert names_of(stacks.user(20, 1, "x")) == ["[no unwind info]"]
    assert stacks.end(20, 1, "x").cut == "no_unwind_info"


@pytest.mark.parametrize(
    ("words", "slot", "callers"),
    [
        (1, 0, [7, 2, 1]),
        (1, 8, [2, 1]),
        (1, None, [2, 1]),
        (1, 4, [2, 1]),
        (2, 8, [7, 2, 1]),
        (2, 0, [2, 1]),
        (3, 0, [7, 2, 1]),
        (3, 8, [8, 2, 1]),
        (3, 16, [2, 1]),
        (3, 1 << 40, [2, 1]),
    ],
)
def test_the_caller_of_a_leaf_without_a_frame(
    words: int, slot: int | None, callers: list[int]
) -> None:
    class Rules(Names):
        def return_slot(self, pid, address, comm=None):
            assert (pid, address, comm) == (1, 3, "x")
            return slot

    kept = [7, 8][: words.bit_count()]
    stacks = Stacks({20: [3, 2, 1, *kept]}, Rules("_start"), {20: (Reason.FRAME_POINTERS, words)})
    assert names_of(stacks.user(20, 1, "x")) == [
        "f3",
        *(f"f{caller}" for caller in callers[:-1]),
        "_start",
    ]
    assert stacks.end(20, 1, "x") == WHOLE


def test_every_reason_has_a_frame() -> None:
    for reason in Reason:
        end = end_of(reason, 2, None)
        assert end.guessed in (0, 2)
        assert bool(root_frame(end)) == bool(end.cut) == (not reason.is_whole)


def test_without_ends_stacks_are_as_they_are() -> None:
    stacks = Stacks({20: [2, 1]}, Names())
    assert names_of(stacks.user(20, 1, "x")) == ["f2", "f1"]
    assert stacks.end(20, 1, "x") == WHOLE
    assert stacks.user(0, 1, "x") == ()
    assert stacks.user(2, 1, "x") is None


def made() -> Profile:
    """Ten whole samples, two of them guessed, and three that are cut."""
    ends = {20: (0, 0), 21: (2, 4), 22: (Reason.COPY_LOST, 0), 23: (Reason.READ_FAULT, 1)}
    stacks = Stacks({number: [number, 1] for number in ends}, Names("main"), ends)
    about = {"call_graph": "tables", "finished": 1, "copies": 3, "copies_lost": 1}
    profile = Profile("Sampling", about=about)
    for number, weight in ((20, 8), (21, 2), (22, 1), (23, 2)):
        end = stacks.end(number, 5, "x")
        profile.add(stacks.user(number, 5, "x"), (), weight, Labels("x", 5), marks=Marks(end=end))
    return profile


def test_the_line_says_how_stacks_ended() -> None:
    profile = made()
    ends = stack_ends(profile)
    assert ends is not None
    assert (ends.total, ends.guessed, ends.cut) == (13, 2, 3)
    assert describe(profile) == (
        "stacks: complete=53.8% finished=7.7% guessed=15.4% cut=23.1% (read_fault=2 copy_lost=1) "
        "copies=3 lost=1 by unwind tables"
    )
    profile.about = {"call_graph": "fp", "call_graph_why": "no helper"}
    assert describe(profile).endswith("by frame pointers, as tables are not possible: no helper")
    assert describe(Profile("Sampling")) == ""


def test_json_keeps_the_ends() -> None:
    text = json_format.document(made())
    tree = json.loads(text)
    assert [stack.get("cut") for stack in tree["stacks"]].count("read_fault") == 1
    assert [stack.get("guessed") for stack in tree["stacks"]].count(4) == 1
    loaded = json_format.parse(text)
    assert [row.marks.end for row in loaded.rows()] == [row.marks.end for row in made().rows()]
    assert json_format.document(loaded) == text
    broken = text.replace('"cut":"read_fault"', '"cut":"boredom"')
    with pytest.raises(Exception, match="boredom"):
        json_format.parse(broken)


def test_other_formats_keep_the_ends() -> None:
    profile = made()
    style = writer.Style(delimiter=False, annotations=False, addresses=False)
    folded = "".join(writer.write(profile, "folded", style))
    assert "x;[cut];main;f22 1\n" in folded
    assert "x;[unreadable];main;f23 2\n" in folded
    assert "x;main;f20 8\n" in folded
    text = "".join(writer.write(profile, "text", style))
    assert "    main+0x1 [x]\n    [unreadable]\n" in text
    data = b"".join(writer.write(profile, "perf.data", style))
    assert data
    packed = pprof.document(profile)
    assert packed
    page = head(profile)["stacks"]
    assert (round(page["whole_percent"], 1), round(page["guessed_percent"], 1)) == (61.5, 15.4)
    assert page["cuts"][0] == {"reason": "read fault", "percent": pytest.approx(15.38, abs=0.01)}


def test_the_frame_counts_neither_as_named_nor_as_deep() -> None:
    profile = made()
    assert profile.unnamed().frames == 2 * 13
    assert count_truncated(profile, 3) == 0
    assert count_truncated(profile, 2) == 0
    (frame,) = root_frame(StackEnd("copy_lost"))
    assert spell_location(frame) == "[cut]"


def test_pprof_is_read_back_with_the_ends() -> None:
    loaded = pprof_reader.parse(gzip.decompress(pprof.document(made())), "x.pb")
    assert stack_ends(loaded) == stack_ends(made())
    ends = {row.weight: row.marks.end for row in made().rows() if row.marks.end != WHOLE}
    assert {row.weight: row.marks.end for row in loaded.rows() if row.marks.end != WHOLE} == ends
    kinds = [row.user[-1].kind for row in loaded.rows() if row.user]
    assert kinds.count("cut") == 2
