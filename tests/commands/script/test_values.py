"""Values of the language, printed by scripts that run."""

from __future__ import annotations

import pytest

import purebpf
from purebpf.observe.script.events import MapPrinted, Printed

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

PRINTED = [
    # constants of the kernel's headers
    ('printf("%d %d %d", TASK_UNINTERRUPTIBLE, DT_REG, O_CLOEXEC);', "2 8 524288"),
    ('printf("%s %s", syscall_name(__NR_read), syscall_name(99999));', "read 99999"),
    # a map whose first value comes from itself
    ("@x = @x + 5; @x = @x + 5; print(@x);", "@x: 10\n"),
    # a percent sign before a space or the end is itself
    ('printf("%d%\\n%%", 7);', "7%\n%"),
]


@pytest.mark.parametrize(("body", "text"), PRINTED)
def test_a_value_is_printed(body: str, text: str) -> None:
    assert printed(f"begin {{ {body} }}") == text


def printed(text: str) -> str:
    """The text that a script prints, without the maps at its end."""
    config = "config = { print_maps_on_exit = 0 } "
    events = [*purebpf.run_script(config + text)]
    return "".join(
        event.text if isinstance(event, Printed) else _map_line(event) for event in events
    )


def _map_line(event: object) -> str:
    assert isinstance(event, MapPrinted)
    return "".join(f"{event.name}: {value}\n" for value in event.items.values())
