"""A folder in which others may write: what they put there is refused, or shown as text."""

from __future__ import annotations

import http.client
import json as plain_json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from purebpf.errors import PurebpfError
from purebpf.results.formats import json
from purebpf.tools.view import folder as view_folder
from purebpf.tools.view.folder import Folder
from purebpf.tools.view.list_page import list_page
from purebpf.tools.view.server import FolderServer
from tests.commands.view.test_view import get, whole_list
from tests.support.builders import profiles

pytestmark = pytest.mark.any_kernel


def save(path: Path, **about: Any) -> None:
    profile = profiles.example()
    profile.about.update(about)
    path.write_text(json.document(profile))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FolderServer]:
    save(tmp_path / "own.json")
    with FolderServer(Folder(str(tmp_path)), ("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize("elapsed_s", [5e-324, 1e-300, 0, -1.0, 1e14])
@pytest.mark.parametrize("started_s", [0, 1e12, -1e12, 1.79e9])
def test_the_list_is_shown_whatever_times_profiles_have(
    tmp_path: Path, started_s: float, elapsed_s: float
) -> None:
    for name in ("first", "second"):
        save(tmp_path / f"{name}.json", started_s=started_s, elapsed_s=elapsed_s)
    folder = Folder(str(tmp_path))
    files = folder.files()
    page = list_page(str(tmp_path), files, [folder.summarize(saved) for saved in files], "token")
    assert page.count(">first.json</a>") == 1


def swap_for_a_pipe(path: Path, _elsewhere: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def swap_for_a_link(path: Path, elsewhere: Path) -> None:
    path.unlink()
    path.symlink_to(elsewhere / "secret.json")


def swap_its_folder(path: Path, elsewhere: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(elsewhere)


@pytest.mark.parametrize("swap", [swap_for_a_pipe, swap_for_a_link, swap_its_folder])
def test_what_took_the_place_of_a_listed_file_is_not_read(tmp_path: Path, swap: Any) -> None:
    elsewhere, shown = tmp_path / "elsewhere", tmp_path / "shown"
    (shown / "week").mkdir(parents=True)
    elsewhere.mkdir()
    save(elsewhere / "secret.json")
    path = shown / "week/secret.json"
    save(path)
    folder = Folder(str(shown))
    (saved,) = folder.files()
    swap(path, elsewhere)
    began = time.monotonic()
    with pytest.raises(PurebpfError, match=r"week/secret\.json"):
        folder.read(saved)
    assert "week/secret.json" in folder.summarize(saved).problem
    assert time.monotonic() - began < 20


def test_a_problem_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "broken.data").write_bytes(b"PERFILE2")
    folder = Folder(str(tmp_path))
    for saved in folder.files():
        problem = folder.summarize(saved).problem
        assert f"{tmp_path}/{saved.name}" in problem
        assert "/dev/fd" not in problem


def test_a_folder_of_any_size_is_listed_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_folder, "_MOST_ENTRIES", 100)
    for name in range(150):
        (tmp_path / f"below {name % 3}").mkdir(exist_ok=True)
        (tmp_path / f"below {name % 3}/{name}.json").touch()
    assert 50 < len(Folder(str(tmp_path)).files()) <= 100


def test_a_file_that_comes_later_is_read_too(tmp_path: Path, server: FolderServer) -> None:
    whole_list(server)
    save(tmp_path / "later.json")
    text = whole_list(server)
    assert "later.json" in text


def test_versions_of_a_file_are_forgotten(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    for second in range(5):
        save(tmp_path / "one.json", started_s=second)
        os.utime(tmp_path / "one.json", (second, second))
        files = folder.files()
        folder.summarize(files[0])
        folder.forget_all_but(files)
    assert len(folder._known) == 1


def test_names_are_text(tmp_path: Path, server: FolderServer) -> None:
    name = "\x1b[2J<img src=x onerror=alert(1)>\n\"'.json"
    save(tmp_path / name)
    text = whole_list(server)
    assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    status, page = get(server, "/profile", f"name={quote(name)}")
    assert status == 200
    assert "<img src=x" not in page
    (tmp_path / name).write_text("{")
    status, problem = get(server, "/profile", f"name={quote(name)}")
    assert status == 422
    assert "\x1b" not in problem


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "own.json/../own.json", "./own.json", "own.json\0", ""],
)
def test_only_what_is_listed_is_opened(server: FolderServer, name: str) -> None:
    assert get(server, "/profile", f"name={quote(name)}")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1"])
def test_a_page_of_another_host_has_no_token(server: FolderServer, host: str) -> None:
    """DNS rebinding: a browser sends its requests here, but has to know the address's token."""
    address = urlsplit(server.url)
    for query in ("", "?token=", "?token=x", "?token=" + "a" * 22):
        connection = http.client.HTTPConnection(address.netloc, timeout=20)
        connection.request("GET", f"/{query}", headers={"Host": host})
        answer = connection.getresponse()
        assert answer.status == 403
        assert b"own.json" not in answer.read()
        connection.close()


def test_a_profile_for_which_memory_is_not_enough_has_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise MemoryError

    save(tmp_path / "large.json")
    monkeypatch.setattr(view_folder.profile_loader, "read", read)
    folder = Folder(str(tmp_path))
    assert "memory" in folder.summarize(folder.files()[0]).problem


def test_numbers_that_no_clock_has_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "own.json")
    document = plain_json.loads((tmp_path / "own.json").read_text())
    assert "about" in document
    for number in ("1e300", "1e400", "1" + "0" * 400):
        text = plain_json.dumps(document).replace(
            '"about": {', f'"about": {{"started_s": {number},'
        )
        assert number in text
        (tmp_path / "own.json").write_text(text)
        os.utime(tmp_path / "own.json", (len(number), 1))
        folder = Folder(str(tmp_path))
        assert folder.summarize(folder.files()[0]).problem
    assert stat.S_ISREG((tmp_path / "own.json").stat().st_mode)


def test_a_file_of_millions_of_lines_is_shown_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the list says that it is not all."""
    monkeypatch.setattr(view_folder, "_BOUNDS", view_folder._BOUNDS._replace(lines=100))
    (tmp_path / "many.folded").write_text("sh;main 1\n" * 3_000)
    with FolderServer(Folder(str(tmp_path)), ("127.0.0.1", 0)) as server:
        text = whole_list(server)
        assert "(incomplete)" in text
        assert f"Folded stacks of {tmp_path}/many.folded" in text
        status, page = get(server, "/profile", "name=many.folded")
    assert status == 200
    assert "2900 lines of the file were left out" in page
