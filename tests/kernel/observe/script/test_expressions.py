"""Random expressions run in the kernel and in the interpreter, and agree."""

from __future__ import annotations

import random

import pytest

from purebpf.observe.script.session import ScriptSession
from purebpf.script import tree
from purebpf.script.compilation import compile_script
from purebpf.script.host import NoHost
from purebpf.script.script_error import ScriptError
from tests.support.oracles.script_interpreter import evaluate, signed

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 (atomic exchange) and 6.9 (loops) lack features
]

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "&&", "||")
EDGES = (0, 1, 2, 7, 63, 127, 128, 255, 256, 32767, 65535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
         (1 << 63) - 1)  # fmt: skip
VARIABLES = ("$a", "$b", "$c", "$d")


def expression(choose: random.Random, depth: int) -> str:
    """A random expression."""
    if depth == 0:
        return choose.choice((*VARIABLES, str(choose.choice(EDGES))))
    one, two = (expression(choose, depth - 1) for _ in range(2))
    match choose.randrange(7):
        case 0:
            return f"({choose.choice(TYPES)})({one})"
        case 1:
            return f"({choose.choice('-~!')}({one}))"
        case 2:
            return f"(({one}) {choose.choice(COMPARISONS)} ({two}))"
        case 3:
            return f"(({one}) {choose.choice(('<<', '>>'))} {choose.randrange(64)})"
        case 4:
            return f"(({one}) ? ({two}) : (int64)({one}))"
        case _:
            return f"(({one}) {choose.choice(ARITHMETIC)} ({two}))"


def has_value(text: str) -> bool:
    """Whether no part of an expression that has numbers only is too large."""
    variables = " ".join(f"{name} = 1;" for name in VARIABLES)
    try:
        compile_script(f"begin {{ {variables} print({text}); }}", NoHost())
    except ScriptError as error:
        if "unable to fold literals" in str(error):
            return False
        raise
    return True


@pytest.mark.parametrize("seed", range(8))
def test_generated_code_agrees_with_the_interpreter(seed: int) -> None:
    choose = random.Random(seed)
    values = {
        "$a": signed(choose.getrandbits(64)),
        "$b": -choose.choice(EDGES),
        "$c": choose.getrandbits(64),
        "$d": choose.getrandbits(16),
    }
    texts: list[str] = []
    while len(texts) < 25:
        text = expression(choose, choose.randrange(1, 4))
        texts += [text] if has_value(text) else []
    lines = [f"${name[1]} = ({'uint64' if name in ('$c', '$d') else 'int64'}){value};"
             for name, value in values.items()]  # fmt: skip
    lines += [f'printf("%lu\\n", (uint64)({text}));' for text in texts]
    compilation = compile_script(f"begin {{ {' '.join(lines)} }}", NoHost())
    output: list[str] = []
    warnings: list[str] = []
    with ScriptSession(compilation, output.append, warnings.append) as session:
        session.attach()
        session.drain()
        assert session.losses() == []
    printed = [
        statement.value.arguments[1]
        for statement in compilation.units[0].probe.body.statements
        if isinstance(statement, tree.Discard) and isinstance(statement.value, tree.Call)
    ]
    expected = [evaluate(node, values) for node in printed]
    seen = [int(line) for line in "".join(output).split()]
    for text, wanted, got in zip(texts, expected, seen, strict=True):
        assert got == wanted, f"{text} with {values}"
    assert all("modulo by 0" in warning for warning in warnings)
