"""Long names as people say them, and what people may type for a long name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.short_names import identifier, merge_clones, shorten, spellings

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

SHORT = {
    "main": "main",
    "do_syscall_64": "do_syscall_64",
    "leaf_a(unsigned long, int)": "leaf_a(ulong, int)",
    f"sort_rows(std::vector<{STRING}, std::allocator<{STRING} > >&, unsigned long)": (
        "sort_rows(vector<string>&, ulong)"
    ),
    "shop::Cart::total() const": "shop::Cart::total() const",
    "void std::sort<int*>(int*, int*)": "sort<int*>(int*, int*)",
    f"std::map<int, {STRING}, std::less<int>, std::allocator<std::pair<int const, {STRING} > > >"
    "::find(int const&)": "map<int, string>::find(int const&)",
    "(anonymous namespace)::parse(char const*)": "parse(char const*)",
    "std::ostream& std::operator<< <char>(std::ostream&, char)": (
        "operator<< <char>(ostream&, char)"
    ),
    "to_string[abi:cxx11](int)": "to_string(int)",
    "core::ops::function::FnOnce::call_once": "FnOnce::call_once",
    "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend": "<Vec<T> as Extend<T>>::extend",
    "tokio::runtime::task::core::Core<T,S>::poll": "Core<T,S>::poll",
    "app::main::{{closure}}": "app::main::{{closure}}",
    "core::ptr::drop_in_place::<shop::db::Pool>": "drop_in_place<Pool>",
    "<shop::db::Pool as shop::Store>::get::<u8>": "<Pool as Store>::get<u8>",
    "app::work::h0123456789abcdef": "app::work",
}


@pytest.mark.parametrize(("name", "short"), SHORT.items())
def test_short(name: str, short: str) -> None:
    assert shorten(name) == short


@given(st.text("abc:<>(), *&operator~{}[]-", max_size=60))
def test_any_text_is_taken(name: str) -> None:
    assert isinstance(shorten(name), str)
    assert name in set(spellings(name))
    identifier(name)


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("leaf_a(unsigned long, int)", "leaf_a(unsigned long, int)"),
        ("leaf_a(unsigned long, int)", "leaf_a(ulong, int)"),
        ("leaf_a(unsigned long, int)", "leaf_a"),
        ("shop::Cart::total() const", "shop::Cart::total"),
        ("void ns::walk<int>(int)", "ns::walk<int>"),
        ("void ns::walk<int>(int)", "ns::walk"),
        ("std::vector<int>::push_back(int const&)", "std::vector<int>::push_back"),
        ("std::vector<int>::push_back(int const&)", "vector<int>::push_back"),
        ("app::work::h0123456789abcdef", "app::work"),
        ("shop::db::Pool::get::h0123456789abcdef", "shop::db::Pool::get"),
        ("shop::db::Pool::get::h0123456789abcdef", "db::Pool::get"),
        ("<shop::db::Pool>::get", "shop::db::Pool::get"),
        ("<shop::db::Pool>::get", "Pool::get"),
        ("<shop::db::Pool<T> as shop::Store>::get::<u8>", "db::Pool::get"),
        ("<alloc::vec::Vec<(u8, a::T)> as core::ops::Drop>::drop", "Vec::drop"),
        ("core::ptr::drop_in_place::<shop::db::Pool>", "ptr::drop_in_place"),
    ],
)
def test_what_a_user_may_type(name: str, typed: str) -> None:
    assert typed in set(spellings(name))


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("ns::walk<std::vector<int> >", "walk"),
        ("ns::walk", "walk"),
        ("leaf_a(unsigned long, ns::T)", "leaf_a"),
        ("Cart::~Cart()", "Cart"),
        ("operator()(int)", ""),
        ("vfs_read", "vfs_read"),
    ],
)
def test_the_identifier_that_the_mangled_name_has_too(typed: str, last: str) -> None:
    assert identifier(typed) == last


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("try_to_wake_up.part.0", "try_to_wake_up"),
        ("tcp_ack.constprop.0.isra.0", "tcp_ack"),
        ("cold_path.cold", "cold_path"),
        ("f.llvm.1234567", "f"),
        ("foo() [clone .constprop.0]", "foo()"),
        ("runtime.main", "runtime.main"),
        ("a.part.b", "a.part.b"),
    ],
)
def test_copies_of_a_function_have_its_name(name: str, merged: str) -> None:
    assert merge_clones(name) == merged


@pytest.mark.parametrize("name", ["StubRoutines (1)", "StubRoutines (initial stubs)"])
def test_names_of_hotspot_stay_whole(name: str) -> None:
    assert shorten(name) == name
