"""Types as C: how each kind is written, and in which order."""

from __future__ import annotations

import pytest

from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError
from tests.support.builders.btf_builder import BtfBuilder


def dumped(b, *wanted):
    return b.btf().dump_c(*wanted)


@pytest.fixture
def b():
    return BtfBuilder()


@pytest.fixture
def int_(b):
    return b.int("int", 4, signed=True)


def declared(b, type_id):
    """A type as C declares a variable `x` of it."""
    text = dumped(b, b.var("x", type_id))
    return text.split("extern ")[-1].rstrip(";\n")


def test_pointers_arrays_and_qualifiers(b, int_):
    char = b.int("char", 1, signed=True)
    assert declared(b, b.ptr()) == "void *x"
    assert declared(b, b.ptr(b.ptr(char))) == "char **x"
    assert declared(b, b.ptr(b.const(char))) == "const char *x"
    assert declared(b, b.const(b.ptr(char))) == "char * const x"
    assert declared(b, b.restrict(b.volatile(b.ptr(char)))) == "char * restrict volatile x"
    assert declared(b, b.array(b.array(int_, 3), 2)) == "int x[2][3]"
    assert declared(b, b.ptr(b.array(int_, 3))) == "int (*x)[3]"
    assert declared(b, b.array(b.ptr(int_), 3)) == "int *x[3]"
    assert declared(b, b.const(b.array(int_, 3))) == "int x[3]"


def test_pointers_to_functions_are_declared(b, int_):
    none = b.func_proto(0)
    variadic = b.func_proto(int_, [("format", b.ptr(b.const(int_))), ("", 0)])
    assert declared(b, b.ptr(none)) == "void (*x)(void)"
    assert declared(b, b.array(b.ptr(none), 4)) == "void (*x[4])(void)"
    assert declared(b, b.ptr(variadic)) == "int (*x)(const int *format, ...)"
    returning = b.func_proto(b.ptr(none), [("", int_)])
    assert declared(b, b.ptr(returning)) == "void (* (*x)(int))(void)"
    assert declared(b, b.ptr(b.func_proto(b.ptr()))) == "void * (*x)(void)"
    callback = b.func_proto(0, [("done", b.ptr(variadic))])
    assert declared(b, b.ptr(callback)) == "void (*x)(int (*done)(const int *format, ...))"


def test_a_function_and_a_variable_are_written_when_asked_for(b, int_):
    node = b.struct("node", [("next", int_)])
    b.func("visit", b.func_proto(int_, [("node", b.ptr(node))]))
    assert dumped(b, "visit") == "struct node;\n\nextern int visit(struct node *node);\n\n"
    assert "visit" not in dumped(b)


def test_a_type_tag_follows_what_it_tags(b, int_):
    node = b.struct("node", [("n", int_)])
    tagged = b.ptr(b.type_tag("rcu", b.const(node)))
    assert declared(b, tagged) == 'const struct node __attribute__((btf_type_tag("rcu"))) *x'


def test_what_is_embedded_comes_first_and_what_is_pointed_to_is_declared(b, int_):
    outer = b.next_id
    b.struct(
        "outer", [("inner", outer + 1, 0), ("other", outer + 2, 128), ("self", outer + 3, 192)], 32
    )
    b.struct("inner", [("n", int_, 0), ("owner", outer + 3, 64)], 16)
    b.ptr(outer + 4)
    b.ptr(outer)
    b.struct("other", [("n", int_)])
    assert dumped(b, "struct outer") == (
        "struct outer;\n\n"
        "struct inner {\n\tint n;\n\tstruct outer *owner;\n};\n\n"
        "struct other;\n\n"
        "struct outer {\n\tstruct inner inner;\n"
        "\tstruct other *other;\n\tstruct outer *self;\n};\n\n"
    )


def test_typedefs_come_before_their_use(b, int_):
    word = b.typedef("word", int_)
    node = b.struct("node", [("n", word)])
    b.typedef("node_t", node)
    hidden = b.struct("", [("a", word)])
    b.typedef("plain_t", hidden)
    assert dumped(b, "node_t", "plain_t") == (
        "struct node;\n\ntypedef struct node node_t;\n\ntypedef int word;\n\n"
        "struct node {\n\tword n;\n};\n\ntypedef struct {\n\tword a;\n} plain_t;\n\n"
    )


def test_anonymous_members_are_written_in_place(b, int_):
    halves = b.struct("", [("low", int_), ("high", int_)])
    either = b.union("", [("", halves), ("whole", b.int("long int", 8, signed=True))])
    color = b.enum("", {"RED": 0, "GREEN": 1})
    b.struct("box", [("", either), ("color", color)])
    assert dumped(b, "box") == (
        "struct box {\n\tunion {\n\t\tstruct {\n\t\t\tint low;\n\t\t\tint high;\n\t\t};\n"
        "\t\tlong int whole;\n\t};\n"
        "\tenum {\n\t\tRED = 0,\n\t\tGREEN = 1,\n\t} color;\n};\n\n"
    )


def test_a_member_of_a_named_type_without_a_name_is_opened(b, int_):
    base = b.struct("base", [("n", int_)])
    b.struct("derived", [("", base), ("m", int_)])
    assert "struct derived {\n\tstruct {\n\t\tint n;\n\t};\n\tint m;\n}" in dumped(b)


def test_bit_fields_and_holes(b, int_):
    byte = b.int("unsigned char", 1)
    b.struct("bits", [("a", int_, 0, 3), ("b", int_, 8, 5), ("c", int_, 64)], size=16)
    assert dumped(b, "bits") == (
        "struct bits {\n\tint a: 3;\n\tchar: 5;\n\tint b: 5;\n"
        "\tint: 32;\n\tint c;\n\tint: 32;\n};\n\n"
    )
    b.struct("tight", [("a", byte, 0), ("b", int_, 8)], size=5)
    assert "struct tight {\n\tunsigned char a;\n\tint b;\n} __attribute__((packed))" in dumped(b)


def test_a_union_that_is_larger_than_its_members(b, int_):
    b.union("wide", [("n", int_)], size=16)
    assert "union wide {\n\tint n;\n\tstruct { long: 64; long: 64; };\n}" in dumped(b)


def test_enums_have_the_width_of_their_type(b):
    b.enum("small", {"A": 0, "B": 200}, size=1)
    b.enum("signs", {"MINUS": -1})
    b.enum64("large", {"HUGE": 1 << 40, "NONE": 0})
    b.enum64("word", {"ONE": 1})
    b.enum("later", {})
    text = dumped(b)
    assert "enum small {\n\tA = 0,\n\tB = 200,\n} __attribute__((mode(byte)))" in text
    assert "enum signs {\n\tMINUS = -1,\n};" in text
    assert "enum large {\n\tHUGE = 1099511627776ULL,\n\tNONE = 0ULL,\n};" in text
    assert "enum word {\n\tONE = 1ULL,\n} __attribute__((mode(word)))" in text
    assert "enum later;" in text


def test_an_anonymous_enum_that_nothing_contains_is_written_on_its_own(b):
    b.enum("", {"LIMIT": 7})
    assert dumped(b) == "enum {\n\tLIMIT = 7,\n};\n\n"


def test_two_types_of_one_name_become_flavours(b, int_):
    b.struct("twin", [("a", int_)])
    b.struct("twin", [("b", int_)])
    b.enum("", {"SAME": 1})
    b.enum("", {"SAME": 2})
    text = dumped(b)
    assert "struct twin {\n\tint a;" in text
    assert "struct twin___2 {\n\tint b;" in text
    assert "SAME = 1" in text
    assert "SAME___2 = 2" in text


def test_names_that_c_has_not(b):
    usize = b.int("usize", 8)
    b.struct("Vec<u8>", [("int", usize), ("0", usize)])
    assert dumped(b) == (
        "typedef unsigned long long usize;\n\nstruct Vec_u8_ {\n\tusize int_;\n\tusize _0;\n};\n\n"
    )


def test_a_forward_declaration_of_what_is_a_union_here(b, int_):
    forward = b.fwd("thing")
    b.union("thing", [("n", int_)])
    b.struct("user", [("p", b.ptr(forward))])
    text = dumped(b)
    assert "struct thing___fwd;" in text
    assert "union thing {" in text


def test_flavours_keep_their_names(b, int_):
    b.struct("task_struct___old", [("state", int_)])
    assert "struct task_struct___old {" in dumped(b)


def test_a_split_btf_writes_its_own_types_and_what_they_need(b, int_):
    b.struct("unused", [("n", int_)])
    used = b.struct("used", [("n", int_)])
    split = BtfBuilder(base=b)
    split.struct("mine", [("used", used)])
    assert (
        dumped(split) == "struct used {\n\tint n;\n};\n\nstruct mine {\n\tstruct used used;\n};\n\n"
    )


def test_what_is_not_there(b, int_):
    with pytest.raises(KeyError, match="unknown type 'struct gone'"):
        dumped(b, "struct gone")
    with pytest.raises(KeyError, match="unknown type 'class int'"):
        dumped(b, "class int")


def itself(b):
    return b.struct("loop", [("self", b.next_id)], size=4)


def typedef_of_itself(b):
    b.typedef("loop", b.next_id + 1)
    return b.ptr(b.next_id - 1)


def endless_prototype(b):
    return b.func_proto(0, [("f", b.next_id), ("g", 0)])


def array_of_itself(b):
    return b.array(b.next_id, 2, 0)


def doubling(b):
    """Anonymous structs, each with the one before twice: 2**40 members."""
    inner = b.struct("", [("a", b.int("int", 4), 0)])
    for _ in range(40):
        inner = b.struct("", [("", inner, 0), ("", inner, 0)], size=4)
    return b.struct("top", [("", inner, 0)], size=4)


def mostly_hole(b):
    """Two gigabytes of padding, eight bytes a line (found by fuzzing)."""
    return b.struct("hole", [("a", b.int("int", 4), 0)], size=1 << 31)


@pytest.mark.parametrize(
    "make", [mostly_hole, itself, typedef_of_itself, endless_prototype, array_of_itself, doubling]
)
def test_endless_and_enormous_types_are_refused(b, make):
    type_id = make(b)
    data = b.bytes()
    with pytest.raises(FormatError):
        Btf(data).dump_c(type_id)
