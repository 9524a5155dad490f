"""What errors of maps advise."""

from __future__ import annotations

import errno

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.errors import ENOTSUPP
from purebpf.loader.maps.map_errors import operation
from purebpf.loader.maps.map_info import MapInfo


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EOPNOTSUPP, ENOTSUPP])
def test_a_ring_buffer_has_records_to_read(error: int) -> None:
    kind = bpf_map_type.BPF_MAP_TYPE_RINGBUF
    info = MapInfo(kind, 7, "events", 0, 0, 4096, 0, 0, 0, 0, 0)
    refused = operation(error, "listing", "bpf(BPF_MAP_GET_NEXT_KEY)", info)
    assert "a ring buffer has records, not elements. read them with read()" in str(refused)
