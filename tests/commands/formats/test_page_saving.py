"""What is saved or copied from the page is what the profile holds."""

from __future__ import annotations

import json as reader
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from purebpf.results.formats import folded, html
from tests.support.builders import profiles
from tests.support.oracles.browser import Open, Page, until

pytestmark = [pytest.mark.needs("browser"), pytest.mark.any_kernel]

TOTAL = profiles.example().total


def test_a_stack_is_copied_leaf_first(page: Page) -> None:
    page.click_box("work")
    page.click("copy")
    stack = "work\nmain\n__libc_start_call_main\napp\n"
    assert until(lambda: page.run("return app.copied")) == stack


def saved(page: Page, downloads: Path, kind: str, name: str) -> bytes:
    path = downloads / name
    path.unlink(missing_ok=True)
    page.choose("save", kind)
    until(path.exists)
    return path.read_bytes()


def test_folded_is_saved_from_the_page(page: Page, downloads: Path) -> None:
    found = saved(page, downloads, "folded", "profile.folded").decode().splitlines(keepends=True)
    assert Counter(found) == Counter(folded.lines(profiles.example()))


def test_speedscope_is_saved_from_the_page(page: Page, downloads: Path) -> None:
    page.only("comm", "tool")
    tree = reader.loads(saved(page, downloads, "speedscope", "profile.speedscope.json"))
    frames = tree["shared"]["frames"]
    (sampled,) = tree["profiles"]
    stacks = {
        tuple(frames[number]["name"] for number in stack): weight
        for stack, weight in zip(sampled["samples"], sampled["weights"], strict=True)
    }
    assert stacks == {
        ("tool", "__libc_start_call_main", "[unknown]"): 9,
        ("tool", "[Missed User Stack]", "entry_SYSCALL_64", "vfs_read"): 5,
        ("tool", "main", "[Missed Kernel Stack]"): 4,
    }


@pytest.mark.needs("go")
def test_pprof_is_saved_from_the_page(page: Page, downloads: Path) -> None:
    saved(page, downloads, "pprof", "profile.pb.gz")
    command = ["go", "tool", "pprof", "-traces", str(downloads / "profile.pb.gz")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "40   work\n             main\n             __libc_start_call_main" in told
    command[3] = "-top"
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Total samples = {TOTAL} " in told or f"of {TOTAL} total" in told


def test_a_picture_of_lines_is_saved(page: Page, downloads: Path) -> None:
    from xml.etree import ElementTree as ET

    tree = ET.fromstring(saved(page, downloads, "svg", "profile.svg"))
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert "work  70 samples, 70.00%" in "\n".join(text or "" for text in texts)


def test_a_picture_of_pixels_is_saved(page: Page, downloads: Path) -> None:
    assert saved(page, downloads, "png", "profile.png").startswith(b"\x89PNG\r\n\x1a\n")


def test_hostile_names_are_saved_as_a_picture(open_page: Open, downloads: Path) -> None:
    from xml.etree import ElementTree as ET

    page = open_page(html.page(profiles.hostile()))
    ET.fromstring(saved(page, downloads, "svg", "profile.svg"))
