"""Names that BPF sends of PHP functions, and a PHP as BPF has it."""

from __future__ import annotations

import pytest

from purebpf.errors import NotSupportedError
from purebpf.observe.runtimes.php.php_layout import pack_php_process
from purebpf.observe.runtimes.php.php_names import PhpTexts, describe_php
from purebpf.observe.runtimes.said_lines import SAID_LINES
from purebpf.runtimes.memory import Memory
from purebpf.runtimes.php.frames import BUILT_IN, EVAL, MAIN, PhpState
from purebpf.runtimes.php.layout import LAYOUTS
from tests.unit.runtimes.php.fake_php import FakePhp

LAYOUT = LAYOUTS[420220829]
NOTHING = Memory(lambda _at, _size: b"")


def described(name: str, path: str, of: str) -> tuple[str, str]:
    """What a record with these texts says."""
    texts = PhpTexts((name + path + of).encode(), len(name), len(path), len(of))
    places = tuple(0x5000 if text else 0 for text in (name, path, of))
    return describe_php(LAYOUT, NOTHING, texts, (places[0], places[1], places[2]))


def test_names_of_each_kind() -> None:
    assert described("run", "/srv/a.php", "App\\Box") == ("App\\Box::run", "/srv/a.php")
    assert described("run", "/srv/a.php", "") == ("run", "/srv/a.php")
    assert described("go", "/srv/a.php", "class@anonymous\0x:3$0") == (
        "class@anonymous::go",
        "/srv/a.php",
    )
    assert described("usort", "", "") == ("usort", BUILT_IN)
    assert described("start", "", "Fiber") == ("Fiber::start", BUILT_IN)
    assert described("", "/srv/a.php", "") == (MAIN, "/srv/a.php")
    assert described("", "/srv/a.php(3) : eval()'d code", "")[0] == EVAL
    assert described("", "", "") == ("", "")  # below the first function of a fiber


def test_a_long_name_is_read_if_it_begins_as_it_did() -> None:
    php = FakePhp(LAYOUT)
    name = b"n" * 300
    at = php.string(name)
    texts = PhpTexts(name[:256] + b"/a.php", 300, 6, 0)
    memory = Memory(php.read)
    assert describe_php(LAYOUT, memory, texts, (at, 0x5000, 0)) == ("n" * 300, "/a.php")
    php.put(at + LAYOUT.string_text, 0)
    assert describe_php(LAYOUT, memory, texts, (at, 0x5000, 0)) == ("n" * 256 + "...", "/a.php")
    assert describe_php(LAYOUT, NOTHING, texts, (at, 0x5000, 0)) == ("n" * 256 + "...", "/a.php")


def test_lines_are_in_the_words() -> None:
    assert SAID_LINES.at(41) == 41


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: str(layout.version))
def test_a_process_is_as_large_as_bpf_has_it(layout: object) -> None:
    (known,) = [each for each in LAYOUTS.values() if each == layout]
    packed = pack_php_process(known, PhpState(0x1234, 0x5678), 1, 2)
    assert len(packed) == 144
    assert int.from_bytes(packed[120:128], "little") == 0x1234
    assert int.from_bytes(packed[136:140], "little") == known.function_file


def test_other_offsets_than_those_of_bpf_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="frame_previous"):
        pack_php_process(LAYOUT._replace(frame_previous=56), PhpState(1), 0, 1)
