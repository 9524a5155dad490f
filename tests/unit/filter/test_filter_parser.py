"""The grammar: what perf accepts, what is new, and where mistakes are shown."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from purebpf.filter import FilterError, parse
from purebpf.filter.fields import CONSTANTS, FIELDS
from purebpf.filter.syntax import And, Comparison, Not, Or, Value
from tests.support.builders.filters import expressions


def _number(field: str, operator: str, number: int) -> Comparison:
    return Comparison(field, operator, Value(str(number), number))


CPU, PID, TID = _number("cpu", "==", 1), _number("pid", ">", 2), _number("tid", "!=", 3)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("cpu == 1", CPU),
        ("cpu==1", CPU),
        ("\tcpu\n==\n1 ", CPU),
        ("cpu == 1,pid > 2", And((CPU, PID))),
        ("cpu == 1 , pid > 2 , tid != 3", And((CPU, PID, TID))),
        ("cpu == 1 || pid > 2", Or((CPU, PID))),
        ("cpu==1||pid>2", Or((CPU, PID))),
        ("cpu == 1 || pid > 2, tid != 3", And((Or((CPU, PID)), TID))),
        ("cpu == 1 || pid > 2 && tid != 3", Or((CPU, And((PID, TID))))),
        ("cpu == 1 || (pid > 2, tid != 3)", Or((CPU, And((PID, TID))))),
        ("(cpu == 1)", CPU),
        ("!cpu == 1", Not(CPU)),
        ("!!cpu == 1", Not(Not(CPU))),
        ("!(cpu == 1 || pid > 2)", Not(Or((CPU, PID)))),
        ("tid!=3", TID),
    ],
)
def test_operators_bind_by_precedence(text, tree):
    assert parse(text).root == tree


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_compared_with_what_suits_it(field):
    value = {"uid": "0", "gid": "0", "comm": "bash", "symbol": "main", "cgroup": "/a"}
    text = f"{field} == {value.get(field, '0x10')}"
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [(field, name, value) for field, names in CONSTANTS.items() for name, value in names.items()],
)
def test_constants_have_their_field_s_value(field, name, value):
    assert parse(f"{field} == {name}").root.value.number == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("cpu == 010", 10),  # perf: leading zeros are decimal
        ("cpu == 0x1F", 31),
        ("cpu == 18446744073709551615", (1 << 64) - 1),
        ("cpu == load", 2),  # perf: constants are global
        ("mem_lvl == na", 0xF),  # not L1, as in perf
        ("mem_snoop == fwd", 0x20),
        ("mem_snoop & peer", 0x40),
    ],
)
def test_numbers_are_read_in_each_notation(text, number):
    assert parse(text).root.value.number == number


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("cgroup == /a||pid == 1", "/a"),
        ("cgroup == 5", "5"),
        ("cgroup == load", "load"),
        (r"cgroup == /system.slice/dev-\x2d.mount", r"/system.slice/dev-\x2d.mount"),
        ("cgroup under a/../b, cpu == 1", "a/../b"),
        ('comm == "a b"', "a b"),
        (r'comm == "a\"b\\c"', 'a"b\\c'),
        ("comm == kworker/0:1-events", "kworker/0:1-eve"),
        ("comm == 7z", "7z"),
        ("symbol == std::vector", "std::vector"),
        ("uid == www-data", "www-data"),
    ],
)
def test_names_end_where_the_language_goes_on(text, word):
    text = text.replace("kworker/0:1-events", word)
    root = parse(text).root
    first = root.parts[0] if isinstance(root, And | Or) else root
    assert first.value.word == word


def test_several_texts_are_one_filter():
    assert parse("cpu == 1 || pid > 2", "tid != 3").root == And((Or((CPU, PID)), TID))


MISTAKES = [
    ("", 1, "the filter is empty"),
    ("  ", 1, "the filter is empty"),
    ("perid > 1", 1, "unknown field 'perid'; similar: period"),
    ("cpu = 1", 5, "unknown operator '='; write '=='"),
    ("cpu 1", 5, "expected an operator, got '1' (after cpu"),
    ("cpu ==", 7, "a number is missing at the end"),
    ("cpu == 1,", 10, "a field is missing at the end"),
    ("cpu == 1 | pid == 2", 10, "expected ',', '||', '&&' or the end, got '|'"),
    ("cpu == 1 pid == 2", 10, ", got 'pid'"),
    ("cpu == -1", 8, "cpu is never negative"),
    ("cpu == 12abc", 8, "'12abc' is not a number"),
    ("cpu == 0x", 8, "'0x' is not a number"),
    ("cpu == 1_0", 8, "'1_0' is not a number"),
    ("cpu == ٣", 8, "expected a number, got '٣'"),
    ("cpu == 18446744073709551616", 8, "does not fit in 64 bits"),
    ("cpu == " + "9" * 5000, 8, "is not a number"),
    ("mem_op == laod", 11, "'laod' is not a value of mem_op, which has na, load"),
    ("(cpu == 1", 10, "')' is missing at the end (for the '(' of column 1"),
    ("cpu == 1)", 9, ", got ')'"),
    ("pid in {1, 2", 13, "',' or '}' is missing at the end (for the '{' of column 8"),
    ("pid in {}", 9, "expected a number, got '}'"),
    ("pid in 5..1", 8, "the range ends before it begins: 5 is above 1"),
    ("pid under 5", 5, "only cgroup takes 'under'"),
    ("cgroup > /a", 8, "cgroup takes ==, !=, under, not '>'"),
    ("comm < a", 6, "comm takes ==, !=, not '<'"),
    ("comm == aaaaaaaaaaaaaaaa", 9, "a thread name has at most 15 bytes"),
    ('comm == "a', 9, "the closing '\"' is missing"),
    ('comm == ""', 9, "a name cannot be empty"),
    ("comm == a\0b", 10, ", got '\\x00'"),
    ("symbol == \0", 11, ", got '\\x00'"),
    ("(" * 200 + "cpu == 1", 101, "more than 100 levels of nesting"),
    ("!" * 200 + "cpu == 1", 1, "more than 100 levels of nesting"),
    ("CPU == 1", 1, "unknown field 'CPU'"),
]


@pytest.mark.parametrize(("text", "column", "problem"), MISTAKES)
def test_mistakes_are_shown_where_they_are(text, column, problem):
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert problem in caught.value.problem
    assert caught.value.column == column
    sentence, shown, caret = str(caught.value).split("\n")
    assert sentence == caught.value.problem
    under = shown[caret.index("^") :]
    assert under == "" or under[0] == text[column - 1] or not text[column - 1].isprintable()


@given(expressions)
def test_what_is_printed_reads_back_as_the_same(tree):
    assert parse(str(tree)).root == tree


_SYMBOLS = (
    *("==", "!=", ">", "<=", "&", "=", "|", "||", "&&", ",", "(", ")", "{", "}", "!", ".."),
    *("in", "under", '"', "\\", "0x", "1", "0", "-1", "/a"),
)
_TOKENS = st.sampled_from([*FIELDS, *_SYMBOLS])


@given(st.one_of(st.text(max_size=80), st.lists(_TOKENS, max_size=30).map(" ".join)))
@example("cpu == \0")
@example("!")
@example("cpu == \ud800")
@example("cpu\0 == 1")
def test_no_text_makes_the_parser_crash(text):
    problem, found = _parsed(text)
    if problem is None:
        assert parse(str(found)).root == found.root
    else:
        assert 1 <= problem.column <= len(text) + 1
        assert len(str(problem).split("\n")) == 3


def _parsed(text):
    try:
        return None, parse(text)
    except FilterError as error:
        return error, None


@pytest.mark.parametrize("name", ["a\xa0b", "\u2003", "\x1c"])
def test_blanks_of_other_scripts_are_part_of_a_name(name: str) -> None:
    parsed = parse(f"comm == {name}")
    assert parse(str(parsed)).root == parsed.root
    assert name in str(parsed)
