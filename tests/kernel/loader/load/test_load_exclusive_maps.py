"""Maps that one program alone may use: the kernel knows it by the hash of its instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf.loader.features import features
from purebpf.loader.maps.map import Map
from purebpf.relocate import Linker

pytestmark = pytest.mark.needs("bpf")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/load_exclusive.bpf.o")
EXCLUSIVE = SPEC.exclusive(secrets="owner")
PACKET = bytes(14)


@pytest.mark.needs("exclusive_maps")
def test_its_program_uses_it_and_so_does_user_space():
    with purebpf.load(EXCLUSIVE.only("owner")) as obj:
        assert [obj.programs["owner"].test_run(PACKET).retval for _ in range(3)] == [1, 2, 3]
        assert obj.maps["secrets"][0] == 3
        obj.maps["secrets"][0] = 22
        assert obj.programs["owner"].test_run(PACKET).retval == 23


@pytest.mark.needs("exclusive_maps")
def test_another_program_is_refused_and_the_error_says_why():
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(EXCLUSIVE)
    assert "'stranger'" in str(caught.value)
    assert "hash doesn't match map's excl_prog_hash" in str(caught.value)
    with purebpf.load(SPEC) as obj:  # and without the exclusion both may
        assert obj.programs["stranger"].test_run(PACKET).retval == 0


@pytest.mark.needs("exclusive_maps")
def test_a_program_of_a_later_load_is_known_by_its_instructions():
    with purebpf.load(EXCLUSIVE.only("owner")) as obj:
        obj.programs["owner"].test_run(PACKET)
        with purebpf.load(SPEC.only("owner"), maps={"secrets": obj.maps["secrets"]}) as same:
            assert same.programs["owner"].test_run(PACKET).retval == 2
        with pytest.raises(purebpf.VerifierError, match="excl_prog_hash"):
            purebpf.load(SPEC.only("stranger"), maps={"secrets": obj.maps["secrets"]})


@pytest.mark.needs("exclusive_maps")
def test_a_map_without_an_object_takes_the_hash_itself():
    digest = Linker(SPEC, []).link("stranger").digest
    with (
        Map.create(SPEC.maps["secrets"]._replace(program_hash=digest), btf=SPEC.btf) as secrets,
        purebpf.load(SPEC.only("stranger"), maps={"secrets": secrets}) as obj,
    ):
        secrets[0] = 7
        assert obj.programs["stranger"].test_run(PACKET).retval == 7


@pytest.mark.needs("exclusive_maps")
@pytest.mark.parametrize("name", ["owner", "stranger"])
def test_the_hash_begins_with_the_tag_that_the_kernel_gives(name):
    with purebpf.load(SPEC) as obj:
        assert Linker(SPEC, []).link(name).digest[:8].hex() == obj.programs[name].info.tag


def test_a_kernel_without_them_is_named(monkeypatch):
    monkeypatch.setattr(features, "have_exclusive_maps", lambda: False)
    wrong = SPEC.maps["secrets"]._replace(program_hash=bytes(31))  # as long as no kernel takes
    with pytest.raises(purebpf.KernelError) as caught:
        Map.create(wrong)
    assert caught.value.why == (
        "this kernel does not support maps exclusive to a program (Linux 6.18)"
    )


def test_the_program_must_be_in_the_object():
    with pytest.raises(purebpf.LinkError, match="map secrets is exclusive to this program"):
        purebpf.load(EXCLUSIVE.only("stranger"))


def test_names_are_checked():
    with pytest.raises(KeyError, match="unknown map 'secret'; similar: secrets"):
        SPEC.exclusive(secret="owner")
    with pytest.raises(KeyError, match="unknown program 'owners'; similar: owner"):
        SPEC.exclusive(secrets="owners")
