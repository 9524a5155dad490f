"""The command line of purebpf.tools.setup."""

import grp
import pwd

import pytest

from purebpf.tools.setup.options import parse
from purebpf.tools.setup.request import SetupOptions


def test_status_is_of_no_user_with_four_slots_by_default():
    assert parse(["status"]) == SetupOptions("status", (), 4, "")


def test_users_are_known_by_name_and_number():
    assert parse(["pin", "--user", "root"]).users == (0,)
    assert parse(["pin", "--user", "4711", "--slots", "9"]) == SetupOptions("pin", (4711,), 9)


def test_a_group_is_its_members_each_once(monkeypatch):
    people = [("ann", 1, 50), ("bob", 2, 60), ("cyd", 3, 60), ("dan", 4, 70)]
    everyone = [pwd.struct_passwd((name, "", uid, gid, "", "", "")) for name, uid, gid in people]
    monkeypatch.setattr(pwd, "getpwall", lambda: everyone)
    group = grp.struct_group(("dev", "", 60, ["ann", "bob", "gone"]))
    monkeypatch.setattr(grp, "getgrnam", lambda name: {"dev": group}[name])
    assert parse(["pin", "--group", "dev"]).users == (1, 2, 3)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "the following arguments are required: action"),
        (["pin"], "users required: --user or --group"),
        (["lift"], "invalid choice: 'lift'"),
        (["pin", "--user", "no such user"], "unknown user 'no such user'"),
        (["pin", "--group", "no such group"], "unknown group 'no such group'"),
        (["pin", "--group", "99999999999999999999"], "unknown group"),
        (["pin", "--user", "root", "--slots", "0"], "'0' must be above zero"),
        (["pin", "--user", "root", "--slots", "65"], "maximum 64 for each user"),
        (["pin", "--user", "root", "--group", "root"], "not allowed with argument"),
        (["status", "--user", "nobody"], "status shows the current user"),
    ],
)
def test_mistakes_are_explained(argv, said, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(argv)
    assert caught.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())
