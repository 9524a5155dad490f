"""What `features` finds on a kernel of the matrix is what that kernel is known to have."""

from __future__ import annotations

import pytest

from purebpf.loader.features import features
from tests.support import expected

pytestmark = pytest.mark.needs("bpf", "guest")


def test_every_feature_is_found_where_it_is_and_nowhere_else() -> None:
    features.forget()
    absent = {found.name: found.reason for found in features.all_features() if not found}
    wrong = {
        name: absent.get(name, "found, and not expected")
        for name in absent.keys() ^ expected.ABSENT[expected.kernel()]
    }
    assert not wrong
