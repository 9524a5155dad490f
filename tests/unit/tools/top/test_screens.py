"""Every screen takes its request from the options of `top`."""

from __future__ import annotations

import pytest

from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top.screens import SCREENS, load


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_made_of_the_options(name: str) -> None:
    options = ProfileOptions() if not SCREENS[name].has_targets else ProfileOptions(uid=1)
    for by in SCREENS[name].bys:
        load(name, options, by, 1.0)
