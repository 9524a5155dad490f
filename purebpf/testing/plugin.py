"""The plugin of pytest: the mark `bpf`, fixtures (`bpf_load`, `stack_load`, `packets`), and
verifier logs.

pytest loads this in every run where purebpf is installed (entry point `pytest11`), so nothing of
the library is imported before a test asks for it.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from purebpf.loader.load.object import Object
    from purebpf.stacks import StackObject
    from purebpf.testing.packets import Packets

__all__ = ["bpf_load", "packets", "stack_load"]

Loaded = TypeVar("Loaded", bound="AbstractContextManager[Any]")

_SKIPPED: pytest.StashKey[Counter[str]] = pytest.StashKey()
_LAST_LINES = 100
"""Of a verifier log, in a report: its end is what decided."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --bpf-required."""
    text = "fail tests that may not load BPF programs here, instead of skipping them"
    parser.getgroup("purebpf").addoption("--bpf-required", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    text = "bpf(*types): loads programs of these types (default: tracepoint), or is skipped"
    config.addinivalue_line("markers", text)
    config.stash[_SKIPPED] = Counter()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the mark `bpf` where this process cannot load such programs."""
    for mark in item.iter_markers("bpf"):
        for program_type in mark.args or ("tracepoint",):
            if reason := _missing(program_type):
                _leave(item, reason)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say why tests were skipped, also without -rs."""
    for reason, count in config.stash[_SKIPPED].most_common():
        terminalreporter.write_line(f"purebpf: {count} skipped: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001 - pytest goes by the names
    call: pytest.CallInfo[Any],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the log of a program that the verifier refused, in the report of the test."""
    report = yield
    if report.failed and call.excinfo is not None and (log := _verifier_log(call.excinfo.value)):
        report.sections.append(("verifier log", log))
    return report


@pytest.fixture
def bpf_load(request: pytest.FixtureRequest) -> Iterator[Callable[..., Object]]:
    """`purebpf.load` for the time of one test: its objects are closed when the test ends.

    Where this process may not load BPF programs, the test is skipped with the reason.
    """
    from purebpf.loader.load.load import load

    with ExitStack() as loaded:
        yield _loading_for(request.node, loaded, load)


@pytest.fixture
def stack_load(request: pytest.FixtureRequest) -> Iterator[Callable[..., StackObject]]:
    """`purebpf.stacks.load` for the time of one test, as `bpf_load` is `purebpf.load`."""
    from purebpf.stacks import load

    with ExitStack() as loaded:
        yield _loading_for(request.node, loaded, load)


def _loading_for(
    item: pytest.Item, loaded: ExitStack, load: Callable[..., Loaded]
) -> Callable[..., Loaded]:
    """Return a function that loads as `load` does, until `loaded` is closed."""
    from purebpf.errors import KernelError

    def load_for_test(source: Any, /, *args: Any, **options: Any) -> Loaded:
        try:
            made = load(source, *args, **options)
        except KernelError as error:
            if error.errno == errno.EPERM and (reason := _missing("tracepoint")):
                _leave(item, reason)
            raise
        loaded.enter_context(made)
        return made

    return load_for_test


@pytest.fixture
def packets() -> Packets:
    """Makes frames: `packets.udp(b"payload", destination_port=53)`, `tcp(...)`, `ping(...)`."""
    from purebpf.testing.packets import Packets

    return Packets()


def _missing(program_type: str) -> str:
    """Why programs of a type cannot be loaded here, or ""."""
    from purebpf.loader.features.features import have_program_type

    feature = have_program_type(program_type)
    return "" if feature else str(feature)


def _leave(item: pytest.Item, reason: str) -> None:
    if item.config.getoption("bpf_required"):
        pytest.fail(f"--bpf-required: {reason}", pytrace=False)
    item.config.stash[_SKIPPED][reason] += 1
    pytest.skip(reason)


def _verifier_log(error: BaseException | None) -> str:
    """Return the end of the log of an error, or of its cause."""
    from purebpf.errors import VerifierError

    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, VerifierError):
            lines = error.log.splitlines()
            left_out = len(lines) - _LAST_LINES
            head = [f"({left_out} lines before)"] if left_out > 0 else []
            return "\n".join([*head, *lines[-_LAST_LINES:]])
        error = error.__cause__ or error.__context__
    return ""
