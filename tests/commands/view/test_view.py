"""A folder of profiles in a browser: the list, one of them, two of them, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from purebpf.errors import KernelError
from purebpf.results import Cause, Labels, Loss, Profile
from purebpf.results.formats import json
from purebpf.results.model.profile import Marks
from purebpf.results.model.stack_end import WHOLE, StackEnd
from purebpf.symbols.frame import Address, Frame
from purebpf.tools.view.folder import Folder
from purebpf.tools.view.server import FolderServer
from tests.support.builders import profiles
from tests.support.oracles.browser import until

pytestmark = pytest.mark.any_kernel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "week").mkdir()
    for day in (1, 2):
        profile = profiles.example()
        profile.about["started_s"] = 1_795_000_000.0 + 86400 * day
        (tmp_path / f"week/day {day}.json").write_text(json.document(profile))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "notes.txt").write_text("not a profile")
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[FolderServer]:
    with FolderServer(Folder(str(folder)), ("127.0.0.1", 0)) as found:
        yield found


def get(server: FolderServer, path: str, query: str = "") -> tuple[int, str]:
    base = urlsplit(server.url)
    address = f"{base.scheme}://{base.netloc}{path}?{base.query}&{query}"
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def whole_list(server: FolderServer) -> str:
    def all_are_read() -> str:
        text = get(server, "/")[1]
        return "" if "still to be read" in text else text

    return str(until(all_are_read))


def test_the_list_has_every_profile_and_says_what_is_wrong(server: FolderServer) -> None:
    text = whole_list(server)
    assert "3 profiles" in text
    lines = text.partition("<tbody>")[2]
    assert lines.index("week/day 2.json") < lines.index("week/day 1.json"), "the newest first"
    assert "100 samples" in text
    assert "(incomplete)" in text
    assert re.search(r'broken\.json</a>.*class="text problem">[^<]*broken\.json', text)
    assert "notes.txt" not in text
    assert "link.json" not in text
    assert text.count("<rect ") == 2, "a bar for each that has a length"


def test_callers_that_are_lost_make_a_profile_incomplete_and_notes_do_not(tmp_path: Path) -> None:
    note = Cause("python_merge", 3, "3 stacks", is_note=True)
    whole, cut = (Profile(loss=Loss(10, 10, causes=(note,))) for _ in range(2))
    for profile, end in ((whole, WHOLE), (cut, StackEnd(cut="read_fault"))):
        profile.about["call_graph"] = "tables"
        frame = Frame("work", 0, "app", Address(1), "user")
        profile.add((frame,), (), 10, Labels("app", 7), marks=Marks(end=end))
    (tmp_path / "whole.json").write_text(json.document(whole))
    (tmp_path / "cut.json").write_text(json.document(cut))
    folder = Folder(str(tmp_path))
    complete = {saved.name: folder.summarize(saved).is_complete for saved in folder.files()}
    assert complete == {"whole.json": True, "cut.json": False}


def test_a_profile_is_a_flame_graph(server: FolderServer) -> None:
    status, text = get(server, "/profile", f"name={quote('week/day 1.json')}")
    assert status == 200
    assert "vfs_read" in text


def test_two_are_compared(server: FolderServer) -> None:
    names = f"before={quote('week/day 1.json')}&after={quote('week/day 2.json')}"
    status, text = get(server, "/compare", names)
    assert status == 200
    assert "week/day 1.json -\\u003e week/day 2.json" in text or "week/day 1.json -&gt;" in text
    assert "Mark one profile as before" in get(server, "/compare", "before=x")[1]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "link.json", "notes.txt", "", "week"]
)
def test_nothing_else_is_read(server: FolderServer, name: str) -> None:
    status, text = get(server, "/profile", f"name={quote(name)}")
    assert (status, text) == (404, "There is no such profile in the folder.\n")


def test_a_damaged_file_is_an_error_with_words(server: FolderServer) -> None:
    status, text = get(server, "/profile", "name=broken.json")
    assert status == 422
    assert "broken.json" in text
    assert "Traceback" not in text


def test_without_the_token_there_is_nothing(server: FolderServer) -> None:
    base = urlsplit(server.url)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{base.scheme}://{base.netloc}/", timeout=30)
    with refused.value:
        assert refused.value.code == 403


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    for number, name in enumerate(profiles.HOSTILE[:-1]):
        profile = profiles.example()
        profile.title = name
        spoken = name.encode("utf-8", "ignore").decode().replace("/", " ")[:100]
        place = tmp_path / f"{number} {spoken}.json"
        place.write_bytes(json.document(profile).encode("utf-8", "backslashreplace"))
    strange = b"\xff.json"
    (tmp_path / os.fsdecode(strange)).write_text(json.document(profiles.example()))
    with FolderServer(Folder(str(tmp_path)), ("127.0.0.1", 0)) as server:
        text = whole_list(server)
        assert get(server, "/profile", f"name={quote(strange)}")[0] == 200
    assert "<script" not in text
    assert "<img" not in text


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="ENOENT"):
        Folder(str(tmp_path / "missing"))


def test_the_command_serves_until_a_signal(folder: Path) -> None:
    command = [sys.executable, "-m", "purebpf", "view", str(folder)]
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stderr is not None
        line = child.stderr.readline()
        address = line.rsplit(" ", 1)[1].strip()
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert "3 profiles" in answer.read().decode()
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
        assert child.stderr.read() == ""
