"""/proc/PID/maps lines."""

from __future__ import annotations

import pytest

from purebpf.symbols.proc_maps import MappedFile, Mapping, mapped_file, parse_maps

_TEXT = """\
56135a8c4000-56135a8c6000 r--p 00000000 fe:00 260131                     /usr/bin/cat
56135a8c6000-56135a8cb000 r-xp 00002000 fe:00 260131                     /usr/bin/cat
7f00da000000-7f00da021000 rwxp 00000000 00:00 0
7f00db000000-7f00db021000 r-xs 00001000 00:01 1058                       /memfd:jit code (deleted)
7f00dc000000-7f00dc021000 r-xp 00000000 103:02 77                        /tmp/a b\\012c (deleted)
7ffd5f1e2000-7ffd5f1e4000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def test_only_executable_mappings_are_kept_with_all_their_fields():
    assert list(parse_maps(_TEXT)) == [
        Mapping(
            0x56135A8C6000, 0x56135A8CB000, 0x2000, MappedFile("/usr/bin/cat", 0xFE, 0, 260131)
        ),
        Mapping(0x7F00DA000000, 0x7F00DA021000, 0, MappedFile("")),
        Mapping(
            0x7F00DB000000,
            0x7F00DB021000,
            0x1000,
            MappedFile("/memfd:jit code", 0, 1, 1058, deleted=True),
        ),
        Mapping(
            0x7F00DC000000, 0x7F00DC021000, 0, MappedFile("/tmp/a b\nc", 0x103, 2, 77, deleted=True)
        ),
        Mapping(0x7FFD5F1E2000, 0x7FFD5F1E4000, 0, MappedFile("[vdso]")),
        Mapping(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, 0, MappedFile("[vsyscall]")),
    ]


def test_other_lines_are_skipped():
    assert list(parse_maps("")) == []
    assert list(parse_maps("garbage\n1-2 r-xp\n\n")) == []


@pytest.mark.parametrize(
    ("path", "anonymous", "special"),
    [
        ("", True, False),
        ("//anon", True, False),
        ("[heap]", True, False),
        ("[anon:v8]", True, False),
        ("/memfd:doublemapper (deleted)", True, False),
        ("[vdso]", False, True),
        ("[uprobes]", False, True),
        ("/usr/lib/libc.so.6", False, False),
    ],
)
def test_what_kind_of_mapping_it_is(path, anonymous, special):
    file = mapped_file(path)
    assert (file.is_anonymous, file.is_special) == (anonymous, special)


def test_the_file_offset_of_an_address():
    mapping = Mapping(0x1000, 0x2000, 0x500, MappedFile("/bin/a"))
    assert mapping.file_offset(0x1010) == 0x510
