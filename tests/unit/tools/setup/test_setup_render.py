"""What purebpf.tools.setup prints, to the letter."""

from purebpf.observe.filters.filter_preflight import Check, Preflight
from purebpf.observe.filters.pinned_slots import Slot
from purebpf.tools.setup.render import render_pinned, render_status, render_unpinned
from purebpf.tools.setup.session import Done, Status

EVENTS = Check("perf events", True, "kernel.perf_event_paranoid is 2: user mode of its own")
OWN = Check("own programs", False, "this process lacks CAP_BPF and CAP_PERFMON (CapEff 0x0)")
SYSTEM = Check("bpf file system", True, "/sys/fs/bpf has mode 1711")
SLOTS = Check("pinned slots", True, "1 of 2 free")
FOLDER = "/sys/fs/bpf/purebpf/filter/1000"


def test_a_user_with_slots():
    found = Preflight(1000, False, True, (EVENTS, OWN, SYSTEM, SLOTS))
    slots = (
        ("ann", Slot(1000, 0, True, 4711, "python", ())),
        ("ann", Slot(1000, 1, False, 4242, "", ())),
    )
    assert "".join(render_status(Status("ann", found, slots))) == (
        "filters of ann (uid 1000) run in the kernel, with programs that root pinned\n"
        "  ok  perf events      kernel.perf_event_paranoid is 2: user mode of its own\n"
        "  no  own programs     this process lacks CAP_BPF and CAP_PERFMON (CapEff 0x0)\n"
        "  ok  bpf file system  /sys/fs/bpf has mode 1711\n"
        "  ok  pinned slots     1 of 2 free\n"
        "\n"
        "USER  SLOT  STATE       PID  COMMAND\n"
        "ann      0  taken      4711  python\n"
        "ann      1  free\n"
    )


def test_names_cannot_move_the_cursor():
    found = Preflight(0, True, False, (EVENTS,))
    slots = (("ann", Slot(1000, 0, True, 4711, "\x1b[2J\nx", ())),)
    last = "".join(render_status(Status("root", found, slots))).splitlines()[-1]
    assert last == "ann      0  taken      4711  ?[2J?x"


def test_a_user_without():
    missing = Check(
        "pinned slots", False, f"none in {FOLDER}", "sudo python -P -m purebpf setup pin"
    )
    found = Preflight(1000, False, False, (EVENTS, OWN, SYSTEM, missing))
    lines = "".join(render_status(Status("ann", found, ()))).splitlines()
    assert lines[0] == "filters of ann (uid 1000) run in user space only"
    assert lines[-2:] == [
        f"  no  pinned slots     none in {FOLDER}",
        "                       sudo python -P -m purebpf setup pin",
    ]


def test_no_events_at_all():
    closed = Check("perf events", False, "kernel.perf_event_paranoid is 3", "sudo sysctl x=2")
    found = Preflight(1000, False, True, (closed, OWN, SYSTEM, SLOTS))
    first = next(iter(render_status(Status("ann", found, ()))))
    assert first == "filters of ann (uid 1000) run nowhere: this user cannot open events\n"


def test_a_slot_that_lost_a_file():
    found = Preflight(0, True, False, (EVENTS,))
    slots = (("a-long-name", Slot(1, 0, False, 0, "", ("table: it does not exist", "x: \x1b[2J"))),)
    status = Status("root", found, slots)
    assert not status.is_whole
    lines = "".join(render_status(status)).splitlines()
    assert lines[-5:-1] == [
        "USER         SLOT  STATE       PID  COMMAND",
        "a-long-name     0  broken",
        "",
        "a-long-name, slot 0: table: it does not exist; x: ?[2J",
    ]
    assert lines[-1].startswith("repair: sudo ")
    assert lines[-1].endswith(" pin --user 1 --slots 1")


def test_what_could_not_be_looked_at():
    found = Preflight(0, True, False, (EVENTS,))
    status = Status("root", found, (), ("/sys/fs/bpf/purebpf: it belongs to UID 7, not to root",))
    assert not status.is_whole
    last = "".join(render_status(status)).splitlines()[-1]
    assert last == "/sys/fs/bpf/purebpf: it belongs to UID 7, not to root"


def test_pinned_and_unpinned():
    done = [Done("ann", FOLDER, 4), Done("bob", "/b", 1)]
    assert list(render_pinned(done)) == [f"ann has 4 slots in {FOLDER}\n", "bob has 1 slot in /b\n"]
    assert list(render_unpinned([*done, Done("cyd", "/c", 0)])) == [
        f"ann had 4 slots in {FOLDER}\n",
        "bob had 1 slot in /b\n",
        "cyd had none\n",
    ]
    assert list(render_unpinned([Done("dan", "/d", 0, "it belongs to UID 7")])) == []
    assert list(render_unpinned([])) == ["no user had any\n"]
