"""C++ and Rust names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from purebpf.symbols.demangle import demangle


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("main", "main"),
        ("_start", "_start"),
        ("_Znonsense", "_Znonsense"),
        ("_RNvCnonsense", "_RNvCnonsense"),
        ("Resize", "Resize"),
        ("_ZN3foo3barEv", "foo::bar()"),
        ("__ZN3foo3barEv", "foo::bar()"),
        ("_ZN3foo3barEv@plt", "foo::bar()@plt"),
        ("_ZL3foov.constprop.0", "foo() [clone .constprop.0]"),
        (
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
        ),
        ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
        (
            "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h0123456789abcdefE",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
        ),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
    ],
)
def test_mangled_names_are_demangled(name, expected):
    assert demangle(name) == expected


def test_the_demangler_is_imported_for_the_first_name_that_needs_it():
    code = (
        "import sys; from purebpf.symbols.demangle import demangle\n"
        "demangle('main'); assert 'demangle' not in sys.modules\n"
        "demangle('_Z3foov'); assert 'demangle' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_package_names_stay_as_they_are():
    code = (
        "import sys; sys.modules['demangle'] = None\n"  # as if it were not installed
        "from purebpf.symbols.demangle import demangle\n"
        "assert demangle('_Z3foov') == '_Z3foov'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
