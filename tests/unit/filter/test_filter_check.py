"""Fields that an event's samples lack, and names that stand for nothing."""

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.abi.perf import perf_sw_ids, perf_type_id
from purebpf.filter import FilterError, check, check_event, needs, parse
from purebpf.filter.fields import FIELDS, Kind
from purebpf.filter.lowering import NoNames, resolve

DEFAULT = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_PERIOD


def test_a_missing_field_names_its_sample_type_and_option():
    with pytest.raises(FilterError) as caught:
        check(parse("pid == 1, cpu > 0"), DEFAULT, "cpu-clock")
    assert str(caught.value).split("\n") == [
        "samples of cpu-clock do not have cpu (PERF_SAMPLE_CPU): add --sample-cpu",
        "    pid == 1, cpu > 0",
        "              ^^^^^^^",
    ]
    check(parse("pid == 1, cpu > 0"), DEFAULT | bit.PERF_SAMPLE_CPU)


def test_every_part_of_an_or_is_checked():
    with pytest.raises(FilterError, match=r"PERF_SAMPLE_DATA_SRC\): add -d"):
        check(parse("pid == 1 || (cpu == 2, !mem_op == load)"), DEFAULT | bit.PERF_SAMPLE_CPU)


@pytest.mark.parametrize("field", [f for f in FIELDS.values() if f.kind is Kind.NUMBER])
def test_any_one_of_a_field_s_sample_types_will_do(field):
    parsed = parse(f"{field.name} == 1")
    for each in bit:
        if each & field.bits:
            check(parsed, each)
    with pytest.raises(FilterError, match=field.name):
        check(parsed, ~field.bits)


def test_users_and_names_need_nothing():
    assert needs(parse("uid == 0, comm == a, gid != 5, cgroup == /a")) != ()
    check(parse("uid == 0, comm == a, gid != 5"), 0)


def test_needs_names_each_field_once():
    found = needs(parse("cpu == 1 || cpu == 2, weight > 3"))
    assert [(need.field.name, need.field.option, need.bit_names) for need in found] == [
        ("cpu", "--sample-cpu", "PERF_SAMPLE_CPU"),
        ("weight", "-W", "PERF_SAMPLE_WEIGHT or PERF_SAMPLE_WEIGHT_STRUCT"),
    ]


@pytest.mark.parametrize(
    ("text", "column"),
    [("cpu == 1, uid == nobody", 18), ("gid in {1, staff}", 12), ("cgroup != /x", 11),
     ("cgroup under /x", 14), ("symbol in {main}", 12)],
)  # fmt: skip
def test_an_unknown_name_is_shown(text, column):
    with pytest.raises(FilterError, match="unknown") as caught:
        resolve(parse(text), DEFAULT, NoNames())
    assert caught.value.column == column


def test_a_range_of_names_may_turn_out_to_be_empty():
    class Users(NoNames):
        def user(self, name: str) -> int:
            return {"low": 1, "high": 9}[name]

    with pytest.raises(FilterError, match="9 is above 1"):
        resolve(parse("uid in high..low"), DEFAULT, Users())


_SOFTWARE = perf_type_id.PERF_TYPE_SOFTWARE
_ALWAYS = {"ip", "tid", "pid", "time", "id", "cpu", "period", "cgroup", "code_pgsz", "uid", "gid",
           "comm", "symbol"}  # fmt: skip
_ADDRESSES = {"addr", "phys_addr", "data_pgsz"}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_a_software_event_leaves_empty_is_refused(field):
    parsed = parse(f"cpu == 1 || !({field} {'& 1' if field not in _ALWAYS else '== 1'})")
    for config in perf_sw_ids:
        if field in _ALWAYS or (field in _ADDRESSES and "FAULTS" in config.name):
            check_event(parsed, _SOFTWARE, config)
            continue
        with pytest.raises(FilterError, match=f"cpu-x never have a value for {field}"):
            check_event(parsed, _SOFTWARE, config, "cpu-x")


def test_hardware_may_have_any_field_and_breakpoints_have_addresses():
    for field in FIELDS:
        check_event(parse(f"{field} == 1"), perf_type_id.PERF_TYPE_HARDWARE, 0)
    check_event(parse("addr == 1"), perf_type_id.PERF_TYPE_BREAKPOINT, 0)
    with pytest.raises(FilterError, match="weight"):
        check_event(parse("weight == 1"), perf_type_id.PERF_TYPE_BREAKPOINT, 0)
