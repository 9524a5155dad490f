"""Directories held by descriptor: no link is followed, none that others write to is used."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from purebpf.errors import KernelError
from purebpf.syscall.folder import Folder, explain_distrust


def test_a_directory_is_reached_from_the_root(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").mkdir()
    with Folder.reach(str(tmp_path)) as folder:
        assert sorted(folder.names()) == ["a", "b"]
        assert folder.path == str(tmp_path)
        assert os.path.samestat(folder.status, tmp_path.stat())
        assert not folder.is_bpf
    with Folder.reach("/") as root, Folder.reach("//tmp/..") as again:
        assert os.path.samestat(root.status, again.status)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722])
def test_a_directory_that_others_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open/below").mkdir(parents=True)
    (tmp_path / "open").chmod(mode)
    for place in ("open", "open/below"):
        with pytest.raises(
            KernelError, match=rf"open: .*other users can write.*{mode:04o}"
        ) as caught:
            Folder.reach(str(tmp_path / place))
        assert caught.value.errno == errno.EPERM
    (tmp_path / "open").chmod(mode | stat.S_ISVTX)
    Folder.reach(str(tmp_path / "open/below")).close()


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("")
    for place in ("link", "link/below", "file"):
        with pytest.raises(KernelError, match="a file or a symbolic link") as caught:
            Folder.reach(str(tmp_path / place))
        assert caught.value.errno == errno.ENOTDIR
    with pytest.raises(KernelError) as caught:
        Folder.reach(str(tmp_path / "nothing"))
    assert caught.value.errno == errno.ENOENT


def test_links_are_followed_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/up").symlink_to("../link/below")
    (tmp_path / "absolute").symlink_to(tmp_path / "real/up")
    (tmp_path / "circle").symlink_to("circle")
    for place in ("link/below", "real/up", "link/up", "absolute"):
        with Folder.reach(str(tmp_path / place), follow=True) as found:
            assert os.path.samestat(found.status, (tmp_path / "real/below").stat())
    with pytest.raises(KernelError) as caught:
        Folder.reach(str(tmp_path / "circle"), follow=True)
    assert caught.value.errno == errno.ELOOP
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(KernelError, match=r"real: .*other users can write"):
        Folder.reach(str(tmp_path / "absolute"), follow=True)


def test_what_is_there_is_found_without_following(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with Folder.reach(str(tmp_path)) as folder:
        node = folder.find("link")
        assert node is not None
        with node:
            assert stat.S_ISLNK(node.status.st_mode)
        assert folder.find("nothing") is None


def test_a_directory_is_made_once_and_changed_by_descriptor(tmp_path: Path) -> None:
    with Folder.reach(str(tmp_path)) as folder:
        with folder.make("new", 0o711) as made:
            assert made.mode == 0o711
            (tmp_path / "new").rename(tmp_path / "moved")
            (tmp_path / "new").mkdir(0o755)
            made.change(mode=0o700)
        assert stat.S_IMODE((tmp_path / "moved").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o755
        with folder.make("new", 0o711) as again:
            assert again.mode == 0o755
        (tmp_path / "new").chmod(0o777)
        with pytest.raises(KernelError, match="other users can write"):
            folder.make("new", 0o711)


def test_a_tree_is_removed_without_what_its_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("kept")
    (tmp_path / "tree/a/b").mkdir(parents=True)
    (tmp_path / "tree/a/file").write_text("")
    (tmp_path / "tree/a/link").symlink_to(tmp_path / "kept")
    (tmp_path / "tree/dangling").symlink_to("nowhere")
    (tmp_path / "tree/a/b").chmod(0o000)
    with Folder.reach(str(tmp_path)) as folder:
        folder.remove("tree")
        assert folder.names() == ["kept"]
        assert (tmp_path / "kept/file").read_text() == "kept"
        with pytest.raises(KernelError) as caught:
            folder.remove("tree")
        assert caught.value.errno == errno.ENOENT


def test_a_tree_that_is_deeper_than_any_of_ours_is_left(tmp_path: Path) -> None:
    (tmp_path / "tree" / "/".join("x" * 20)).mkdir(parents=True)
    with Folder.reach(str(tmp_path)) as folder:
        with pytest.raises(KernelError, match=r"remove it: rm -r .*/tree/x/x") as caught:
            folder.remove("tree")
        assert caught.value.errno == errno.ELOOP


def test_files_that_others_write_to_are_their_owner_s_choice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o666)
    assert explain_distrust((tmp_path / "file").stat()) == ""


def test_an_owner_without_a_number_here_is_trusted_outside_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from purebpf.syscall import proc

    status = list(tmp_path.stat())
    status[4] = 65534
    unmapped = os.stat_result(status)
    monkeypatch.setattr(proc, "in_first_user_namespace", lambda: False)
    assert "belongs to UID 65534" in explain_distrust(unmapped)
    assert explain_distrust(unmapped, outside=True) == ""
    monkeypatch.setattr(proc, "in_first_user_namespace", lambda: True)
    assert "belongs to UID 65534" in explain_distrust(unmapped, outside=True)
