"""What is mapped where, when mappings are put over others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purebpf.unwind.address_space import AddressSpace, CodeMapping

_RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12)


@given(_RANGES, _RANGES)
def test_the_newest_mapping_of_an_address_is_found(older, newer):
    mappings = [CodeMapping(at, at + size, 0, n) for n, (at, size) in enumerate([*older, *newer])]
    space = AddressSpace([]).overlaid(mappings[: len(older)]).overlaid(mappings[len(older) :])
    for address in range(90):
        covering = [each.file for each in mappings if each.start <= address < each.end]
        found = space.find(address)
        assert (found.file if found else None) == (covering[-1] if covering else None)
    assert all(each.start < each.end for each in space.mappings)
