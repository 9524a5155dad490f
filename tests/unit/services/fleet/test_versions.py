"""Agents, hubs and stores of other versions: what one of them adds, the others leave alone."""

from __future__ import annotations

import base64
import gzip
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

from purebpf.services.fleet import duck
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.compaction import compact
from purebpf.services.fleet.decode import decode
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.directory import Directory
from tests.support.host.deliveries import HOUR_S, PERIOD_NS, Truth, messages

EARLIER = gzip.decompress(
    base64.b64decode(
        "H4sIAAAAAAACAzWQPU7DQBCFvT+xN5OAohVESaoo5RYmcpmSmgtAE4w9Vqw4uyvbCdDRww0QF6DKGbgIPS0cgI0T"
        "j/Skb540M3oDrwRCGEK/wnKXJxjqeIPSB16tjIUL6K5MVR/NADqHZi5voQuB3Zb4YDN5A1yQAZVCEEnojASOaEN0"
        "7N0Pr3vZz2j6sv/4+iaKCxj05u/7t/Fi0Ky6mk/bumO848tPCh7QKXMS0pNdQSZUkBkhJ6RHpA7ZjLCJ54A7+U7d"
        "mac8FVTxxhZYqU5itrpWTRDFH025VtKWJssLDLPSBQrrZ4uKb+Jcq169KjFOm6DKX2OpsVBBapZ5WqBiid2qno61"
        "qTAxOq3U4BQ/xCeLSY2p6rdOhajVZdsVh/dtYrvMtkUReVFfdKQAX8d1vsMoEIFkQOLWPh52dl+y0Z9wcObgV0S+"
        "OJd0RBbeggMldOGG2D+WVaQ9uwEAAA=="
    )
)
"""A window as the first agent wrote it. It never changes: spools of any age are sent."""
ALL = Selection(HOUR_S * 10**6, (HOUR_S + 3600) * 10**6)
LATER_S = HOUR_S + 3600 + 700


def test_a_window_of_the_first_agent_is_stored() -> None:
    (delivery,) = decode(EARLIER, now_ns=time.time_ns())
    assert (delivery.window.host, delivery.window.seen) == ("host0", 1139)
    assert sorted(sample.value for sample in delivery.samples) == [2 * PERIOD_NS, 7 * PERIOD_NS]
    assert {frame.function for frame in delivery.frames.values()} == {"work", "main", "do_idle"}
    assert delivery.window.agent_cpu_ns == 0, "it did not say so"


def test_what_a_later_agent_adds_is_left_alone() -> None:
    """A fact, an attribute of the resource, and fields that this version does not know."""
    tree = ProfilesData.FromString(EARLIER)
    dictionary, profile = tree.dictionary, tree.resource_profiles[0].scope_profiles[0].profiles[0]
    dictionary.string_table.append("purebpf.invented_later")
    fact = dictionary.attribute_table.add(key_strindex=len(dictionary.string_table) - 1)
    fact.value.int_value = 5
    profile.attribute_indices.append(len(dictionary.attribute_table) - 1)
    added = tree.resource_profiles[0].resource.attributes.add(key="zone.name")
    added.value.string_value = "eu"
    field = b"\xaa\x3e\x03new"  # number 997, length-delimited
    later = bytes(tree.SerializeToString()) + field
    (delivery,) = decode(later, now_ns=time.time_ns())
    (before,) = decode(EARLIER, now_ns=time.time_ns())
    assert delivery.window.seen == before.window.seen
    assert delivery.stacks == before.stacks
    assert sorted(sample.value for sample in delivery.samples) == [2 * PERIOD_NS, 7 * PERIOD_NS]
    assert {series.labels for series in delivery.series.values()} == {(("zone.name", "eu"),)}


def rewrite(folder: Path, *, without: str = "", added: str = "") -> None:
    """Files as a version would have written them that lacks a column, or has one more."""
    paths = sorted(folder.rglob("*.parquet"))
    assert paths
    for path in paths:
        rows = pq.ParquetFile(path).read()
        if without:
            rows = rows.drop_columns([without])
        if added:
            rows = rows.append_column(added, pa.array([1] * len(rows), pa.int64()))
        pq.write_table(rows, path)


def test_files_of_other_versions_are_read_together(tmp_path: Path) -> None:
    """One hour of a version with a column more, one of a version with one less, and ours."""
    truth, store = Truth(), Directory(str(tmp_path))
    sent = list(messages(truth, hosts=2, minutes=3))
    for number in range(3):
        batch = Batch({})
        for one in sent[number::3]:
            for delivery in decode(one.data, now_ns=time.time_ns()):
                batch.add(delivery)
        land(store, batch, new_batch_id())
        compact(store, now_s=LATER_S, say=lambda _: None)
        if number == 0:
            rewrite(tmp_path / "windows", without="rss_bytes")
            rewrite(tmp_path / "samples", added="invented_later")
    with duck.connect(store) as connection:
        question = Question(store, ALL, connection, by_host=True)
        assert question.total() == sum(truth.own.values())
        assert {host.host: host.value for host in question.hosts()} == truth.host
        coverage = question.coverage()
        assert coverage.hosts == 2
