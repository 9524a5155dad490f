"""Loops over maps visit every element once, and see and change the variables around them."""

from __future__ import annotations

import random

import pytest

from purebpf.observe.script.session import ScriptSession
from purebpf.script.compilation import compile_script
from purebpf.script.host import NoHost

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.13 (bpf_for_each_map_elem) lack the feature
]


def run(text: str) -> str:
    """The output of a script that has begin and end blocks only."""
    output: list[str] = []
    with ScriptSession(compile_script(text, NoHost()), output.append, output.append) as session:
        session.attach()
        session.drain()
        session.finish()
        assert session.losses() == []
    return "".join(output)


@pytest.mark.parametrize("seed", range(4))
def test_sums_and_counts_agree_with_python(seed: int) -> None:
    choose = random.Random(seed)
    first = {choose.randrange(-1000, 1000): choose.randrange(1 << 40) for _ in range(30)}
    second = {choose.randrange(100): choose.randrange(-50, 50) for _ in range(7)}
    limit = choose.randrange(1 << 40)
    lines = [f"@a[{key}] = {value};" for key, value in first.items()]
    lines += [f"@b[{key}] = {value};" for key, value in second.items()]
    lines.append(
        "$sum = (int64)0; $keys = (int64)0; $pairs = (int64)0;"
        f"for ($kv : @a) {{ if ($kv.1 < {limit}) {{ continue; }} $sum += $kv.1; $keys += $kv.0;"
        " for ($x : @b) { $pairs += $x.1 * $kv.0; } }"
        'printf("%ld %ld %ld %d %d\\n", $sum, $keys, $pairs, len(@a), len(@b)); clear(@a);'
        "clear(@b);"
    )
    kept = {key: value for key, value in first.items() if value >= limit}
    pairs = sum(kept) * sum(second.values())
    expected = (sum(kept.values()), sum(kept), pairs, len(first), len(second))
    assert run(f"begin {{ {' '.join(lines)} }}").split() == [str(number) for number in expected]


def test_break_leaves_the_loop_and_return_leaves_the_block() -> None:
    text = '@["a"] = 1; @["b"] = 2; for ($kv : @) { print($kv.1 > 0); break; } print("out");'
    assert run(f"config = {{ print_maps_on_exit = 0 }} begin {{ {text} }}") == "true\nout\n"
    text = '@["a"] = 1; for ($kv : @) { for ($x : @) { print($x); return; } } print("out");'
    assert run(f"config = {{ print_maps_on_exit = 0 }} begin {{ {text} }}") == "(a, 1)\n"


def test_an_element_can_be_deleted_and_aggregates_are_summed_over_cpus() -> None:
    text = "@[1, 2] = count(); @[1, 2] = count(); @[3, 4] = count();"
    text += "for ($kv : @) { @sums[$kv.0.0] = $kv.1; if ($kv.0.1 == 4) { delete(@, $kv.0); } }"
    assert run(f"begin {{ {text} }}") == "\n\n@[1, 2]: 2\n@sums[3]: 1\n@sums[1]: 2\n"


def test_long_strings_are_copied_whole() -> None:
    word = "x" * 700
    text = f'@["{word}"] = "{word}y"; $seen = ""; for ($kv : @) {{ print($kv); $seen = $kv.1; }}'
    printed = run(f"config = {{ print_maps_on_exit = 0 }} begin {{ {text} print($seen); }}")
    assert printed == f"({word}, {word}y)\n{word}y\n"
