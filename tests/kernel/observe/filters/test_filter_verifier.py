"""The verifier takes whatever the compiler makes of a filter."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.filter.lowering import NoNames, SymbolRange, resolve
from purebpf.filter.syntax import Expression, Filter
from purebpf.observe.filters.compiled_filter import CompiledFilter
from purebpf.observe.filters.sample_filter import kernel_access
from tests.support.builders.filters import expressions

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")


class Everybody(NoNames):
    """Knows every name."""

    def user(self, name: str) -> int:
        return len(name)

    def group(self, name: str) -> int:
        return len(name)

    def cgroup(self, path: str) -> tuple[int, int]:
        return len(path), len(path) % 9

    def symbol(self, name: str) -> list[SymbolRange]:
        return [SymbolRange(0, 5, 500), SymbolRange(3, 1 << 40, (1 << 40) + len(name))]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions)
def test_any_filter_loads(tree: Expression) -> None:
    access = kernel_access()
    if access.cast is None:
        pytest.skip("this kernel prepares no samples (Linux 6.3)")
    terms = resolve(Filter(str(tree), tree), bit.PERF_SAMPLE_WEIGHT, Everybody())
    with CompiledFilter(terms, access) as compiled:
        assert compiled.program.type == 7
        assert compiled.counts() == (0,) * (len(terms) + 1)
