"""strcontains() on kernels without bpf_strstr(): the answers are Python's."""

from __future__ import annotations

import random

import pytest

from purebpf.observe.script.session import ScriptSession
from purebpf.script.compilation import compile_script
from purebpf.script.host import NoHost
from purebpf.script.script_error import ScriptError

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]


def printed(text: str) -> list[str]:
    """What a script prints that is compiled without the types of a kernel."""
    output: list[str] = []
    with ScriptSession(compile_script(text, NoHost()), output.append, output.append) as session:
        session.attach()
        session.drain()
        assert session.losses() == []
    return "".join(output).split()


@pytest.mark.parametrize("seed", range(3))
def test_random_strings_are_found_where_they_are(seed: int) -> None:
    choose = random.Random(seed)
    text = "".join(choose.choice("ab") for _ in range(choose.randrange(60)))
    parts = ["".join(choose.choice("ab") for _ in range(choose.randrange(8))) for _ in range(6)]
    lines = [f'$t = "{text}";']
    for number, part in enumerate(parts):
        lines.append(f'print(strcontains($t, "{part}"));')
        lines.append(f'$p{number} = "{part}"; print(strcontains($t, $p{number}));')
    expected = [str(part in text).lower() for part in parts for _ in range(2)]
    assert printed(f"begin {{ {' '.join(lines)} }}") == expected


def test_the_end_of_a_string_ends_the_search() -> None:
    script = """begin {
        $t = "abcdef"; $t = "xy";
        print(strcontains($t, "cde")); print(strcontains($t, "y")); print(strcontains($t, "yc"));
        print(strcontains("", "")); print(strcontains("", "a")); print(strcontains($t, "xyz01234"));
    }"""
    assert printed(script) == ["false", "true", "false", "true", "false", "false"]


def test_strings_that_the_verifier_would_give_up_on_are_refused_at_their_place() -> None:
    script = "begin { $t = str(0, 1000); $p = str(0, 1000); print(strcontains($t, $p)); }"
    with pytest.raises(ScriptError, match="bpf_strstr") as caught:
        compile_script(script, NoHost())
    assert caught.value.start == script.index("strcontains")
