"""Lines put into a profile, and what each format makes of them."""

from __future__ import annotations

import gzip
from json import loads

from purebpf.results import Labels, Marks, Profile, Waker
from purebpf.results.formats import firefox, json, perf_data, pprof, speedscope
from purebpf.results.formats.folded import lines as folded
from purebpf.results.formats.text import blocks
from purebpf.results.shape.lines import Module, wanted, with_lines
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown
from purebpf.symbols.source_lines import SourceLine

_PROGRAM = Module("/bin/program", "ab12")


def _frame(name: str, at: int, offset: int = 4, module: str = "/bin/program") -> Frame:
    build_id = "ab12" if module == "/bin/program" else ""
    return Frame(name, offset, module, Address(at), "user", build_id, FileOffset(at))


_LEAF, _CALLER = _frame("leaf", 0x100), _frame("caller", 0x200)
_UNKNOWN = Unknown(
    Reason.STRIPPED, "/bin/x", Address(9), "user", build_id="cd", file_offset=FileOffset(9)
)
_KERNEL = Frame("schedule", 3, "kernel", Address(1 << 63), "kernel")


def _profile() -> Profile:
    profile = Profile("title", unit="ns", about={"event": "x"})
    profile.slot_ns, profile.cost = 5, {"run_cnt": 1}
    waker = Waker("w", 8, 8, (_CALLER,), (_KERNEL,))
    profile.add(
        (_LEAF, _CALLER, _UNKNOWN),
        (_KERNEL,),
        3,
        Labels("a", 7),
        ((0, 3),),
        marks=Marks("off-CPU", waker=waker),
    )
    profile.add((_CALLER, _frame("start", 0x300, 0)), None, 9, Labels("b", 7))
    return profile


_ANSWERS = {
    _PROGRAM: {
        FileOffset(0x100): (
            SourceLine("_ZN4shop3addEi", "/src/cart.h", 7),
            SourceLine("leaf", "/src/leaf.c", 20),
        ),
        FileOffset(0x1FF): (SourceLine("other_name", "/src/caller.c", 30),),
    }
}


def test_a_caller_is_asked_about_a_byte_earlier_and_a_leaf_where_it_is():
    profile = _profile()
    profile.add(
        (_frame("", 1, module="[vdso]"), _frame("f", 5, module="/bin/z")), (), 1, Labels("c", 9)
    )
    found = wanted(profile)
    assert list(found) == [_PROGRAM, Module("/bin/z", "")]
    assert found[_PROGRAM].places == {0x100, 0x1FF, 0x200, 0x300}
    assert list(found[_PROGRAM].pids) == [7, 8]
    assert found[Module("/bin/z", "")].places == {4}


def test_inlined_functions_stand_before_their_caller_which_keeps_its_name():
    first, second = with_lines(_profile(), _ANSWERS).rows()
    assert first.user == (
        _LEAF._replace(name="shop::add(int)", offset=0, kind="inlined", file="/src/cart.h", line=7),
        _LEAF._replace(file="/src/leaf.c", line=20),
        _CALLER._replace(file="/src/caller.c", line=30),
        _UNKNOWN,
    )
    assert first.marks.waker.user == (_CALLER,)  # a leaf: nothing is known of that byte
    assert first.kernel == (_KERNEL,)
    assert second.user == (_CALLER, _frame("start", 0x300, 0))
    assert second.kernel is None


def test_an_inlined_function_without_a_name_counts_for_its_caller():
    """As llvm-symbolizer answers about files of dwz -m."""
    lines = (
        SourceLine("", "/src/a.h", 7),
        SourceLine("_ZN4shop3addEi", "/src/cart.h", 8),
        SourceLine("leaf", "/src/leaf.c", 20),
    )
    first, _ = with_lines(_profile(), {_PROGRAM: {FileOffset(0x100): lines}}).rows()
    assert [entry.name for entry in first.user[:2]] == ["shop::add(int)", "leaf"]


def test_all_else_stays():
    before, after = _profile(), with_lines(_profile(), _ANSWERS)
    assert (after.title, after.unit, after.about) == (before.title, before.unit, before.about)
    assert (after.slot_ns, after.cost, after.loss) == (5, {"run_cnt": 1}, before.loss)
    assert with_lines(before, {}).rows() == before.rows()


def test_text_has_the_file_s_name_and_line():
    text = "".join(blocks(with_lines(_profile(), _ANSWERS)))
    assert "    shop::add(int) (inlined) [program] cart.h:7\n" in text
    assert "    leaf+0x4 [program] leaf.c:20\n    caller+0x4 [program] caller.c:30\n" in text


def test_folded_has_the_inlined_functions():
    assert "caller_[off];leaf_[off];shop::add(int)_[off]" in "".join(
        folded(with_lines(_profile(), _ANSWERS))
    )


def test_json_comes_back():
    profile = with_lines(_profile(), _ANSWERS)
    assert json.parse(json.document(profile)).rows() == profile.rows()


def test_json_of_a_saved_profile_has_no_frame_that_nothing_refers_to():
    saved = json.parse(json.document(_profile()))
    written, direct = (json.document(with_lines(each, _ANSWERS)) for each in (saved, _profile()))
    assert loads(written)["frames"] == loads(direct)["frames"]


def test_pprof_has_files_and_lines():
    data = gzip.decompress(pprof.document(with_lines(_profile(), _ANSWERS)))
    assert b"/src/cart.h" in data
    assert b"/src/caller.c" in data
    assert b"/src/" not in gzip.decompress(pprof.document(_profile()))


def test_firefox_has_a_frame_for_each_line_of_a_function():
    answers = {
        _PROGRAM: {
            FileOffset(0x100): (SourceLine("leaf", "/src/leaf.c", 20),),
            FileOffset(0x110): (SourceLine("leaf", "/src/leaf.c", 21),),
        }
    }
    profile = Profile("t")
    profile.add((_LEAF,), (), 1, Labels("a", 7))
    profile.add((_frame("leaf", 0x110),), (), 2, Labels("a", 7))
    (thread,) = loads("".join(firefox.document(with_lines(profile, answers))))["threads"]
    frames, functions = thread["frameTable"], thread["funcTable"]
    assert sorted(frames["line"]) == [20, 21]
    assert frames["func"] == [0, 0]
    assert functions["length"] == 1
    assert thread["stringArray"][functions["fileName"][0]] == "/src/leaf.c"


def test_speedscope_has_the_file():
    tree = loads(speedscope.document(with_lines(_profile(), _ANSWERS)))
    files = {frame["name"]: frame.get("file") for frame in tree["shared"]["frames"]}
    assert files["leaf"] == "/src/leaf.c"
    assert files["start"] == "/bin/program"


def test_perf_data_has_each_address_once():
    build_ids = {"ab12": "ab" * 20}
    rows = with_lines(_profile(), _ANSWERS).rows()
    first = rows[0]._replace(
        user=tuple(
            entry._replace(build_id=build_ids.get(entry.build_id, "")) for entry in rows[0].user
        )
    )
    profile = Profile("t", unit="ns")
    profile.add_row(first)
    data = perf_data.document(profile)
    assert data.count((0x100).to_bytes(8, "little") + (0x200).to_bytes(8, "little")) == 1
