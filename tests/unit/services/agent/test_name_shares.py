"""One user's names leave room for those of the others."""

from __future__ import annotations

import pytest

from purebpf.results.formats.otlp import Attribute
from purebpf.services.agent.name_shares import UNKNOWN_USER, NameShares, user_of_cgroup
from purebpf.services.agent.services import Services

ALICE, MALLORY, ROOT = 1000, 1001, 0


def test_a_user_has_a_share_and_others_keep_theirs() -> None:
    shares = NameShares(most=100, most_of_user=10)
    taken = [shares.admit(f"mine-{number}", MALLORY) for number in range(1000)]
    assert taken == [True] * 10 + [False] * 990
    assert all(shares.admit(f"shop-{number}", ALICE) for number in range(10))
    assert all(shares.admit(f"gone-{number}", UNKNOWN_USER) for number in range(10))
    assert not shares.admit("gone-10", UNKNOWN_USER)
    assert [shares.admit(f"unit-{number}", ROOT) for number in range(71)] == [True] * 70 + [False]
    assert shares.admit("mine-0", MALLORY)
    assert shares.admit("shop-0", MALLORY)


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ("0::/user.slice/user-1000.slice/session-2.scope\n", 1000),
        ("12:cpu:/x\n1:name=systemd:/user.slice/user-7.slice\n0::/\n", 7),
        ("0::/user.slice/user-1000.slice/user@1000.service/user.slice/user-5.slice/x\n", 1000),
        ("0::/../../user.slice/user-1000.slice/x\n", 1000),
        ("0::/system.slice/nginx.service\n", None),
        ("0::/user.slice/user-a.slice/\n", None),
        ("", None),
    ],
)
def test_the_user_of_a_cgroup_is_the_one_of_its_session(text: str, user: int | None) -> None:
    assert user_of_cgroup(text) == user


def test_services_of_a_window_beyond_a_share_are_one() -> None:
    services = Services((), (("env", "prod"),), "web-1")
    shares = NameShares(most=8, most_of_user=3)

    def resource(name: str) -> tuple[Attribute, ...]:
        return (("service.name", name), ("host.name", "web-1"))

    given = [services.admit(shares, resource(f"m{n}"), MALLORY) for n in range(9)]
    assert given[:3] == [resource(f"m{n}") for n in range(3)]
    other = (("service.name", "other"), ("host.name", "web-1"), ("env", "prod"))
    assert given[3:] == [other] * 6
    assert services.admit(shares, resource("shop"), ALICE) == resource("shop")
