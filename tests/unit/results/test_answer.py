"""The text that a person reads first, to the letter."""

from __future__ import annotations

from purebpf.results import Labels, Profile
from purebpf.results.formats import answer
from purebpf.symbols.frame import Address, Frame

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
SORT = f"sort_rows(std::vector<{STRING}, std::allocator<{STRING} > >&, unsigned long)"


def frame(name: str, module: str = "/srv/shop", address: int = 1) -> Frame:
    return Frame(name, 0x10, module, Address(address), "user")


def profile() -> Profile:
    made = Profile()
    shop = Labels("worker-1", 185, process="shop")
    main = frame("main")
    for address in range(3):  # one function at three addresses
        made.add((frame(SORT, address=address), main), (), 20, shop)
    made.add((frame("fib"),) * 9 + (main,), (), 30, shop)
    made.add((), (Frame("vfs_read", 0, "kernel", Address(9), "kernel"),), 10, Labels("cat", 7))
    return made


GOLDEN = """\
    self  CPUs      total  CPUs   function
  60.0 %  1.20     60.0 %  1.20   sort_rows(vector<string>&, ulong) [shop]
  30.0 %  0.60     30.0 %  0.60   fib [shop]
  10.0 %  0.20     10.0 %  0.20   vfs_read [kernel]
   0.0 %  0.00     90.0 %  1.80   main [shop]

3 of 3 stacks, 100 % of 100 samples, the heaviest last:

    vfs_read [kernel]
    -                cat (7)
        10.0 %  0.20 CPUs  10 samples

    fib [shop]  (9 times)
    main [shop]
    -                shop (185)
        30.0 %  0.60 CPUs  30 samples

    sort_rows(vector<string>&, ulong) [shop]
    main [shop]
    -                shop (185)
        60.0 %  1.20 CPUs  60 samples

"""


def test_golden() -> None:
    assert "".join(answer.pieces(profile(), cpus=0.02)) == GOLDEN


def test_whole_names_are_whole() -> None:
    assert f"    {SORT} [shop]\n" in "".join(answer.pieces(profile(), whole_names=True))


def test_nothing_is_nothing() -> None:
    assert not list(answer.pieces(Profile()))


def test_long_profiles_are_cut_and_say_so() -> None:
    made = Profile()
    for number in range(40):
        path = tuple(frame(f"f{number}_{depth}" + "x" * 80) for depth in range(50))
        made.add(path, (), number + 1, Labels("app", 1))
    text = "".join(answer.pieces(made, cpus=0.001))
    assert max(map(len, text.splitlines())) <= 80
    assert "and 1988 more\n" in text
    assert "10 of 40 stacks, 43 % of 820 samples, the heaviest last (all: --all):" in text
    assert text.count("    ... 26 more functions\n") == 10
    few = "".join(answer.pieces(made, top=3))
    assert few.count("(1)\n") == 3
    assert "and 1997 more\n" in few
    assert "3 of 40 stacks, 14 % of 820 samples, the heaviest last (all: --all):" in few
    whole = "".join(answer.pieces(made, everything=True))
    assert " more" not in whole
    assert whole.count("(1)\n") == 40


def test_the_heaviest_functions_alone() -> None:
    lines = list(answer.functions(profile(), 1, cpus=0.02))
    assert lines == [
        "    self  CPUs      total  CPUs   function\n",
        "  60.0 %  1.20     60.0 %  1.20   sort_rows(vector<string>&, ulong) [shop]\n",
        "                                 and 3 more\n",
    ]


def test_a_function_without_a_symbol_names_its_file_once() -> None:
    made = Profile()
    extension = "/usr/lib/_json.cpython-311-x86_64-linux-gnu.so"
    nameless = frame("_json.cpython-311-x86_64-linux-gnu.so!0x4e40", extension)
    made.add((nameless, frame("scan", extension)), (), 1, Labels("app", 1))
    text = "".join(answer.pieces(made))
    assert "    _json!0x4e40\n    scan [_json]\n" in text
    whole = "".join(answer.pieces(made, whole_names=True))
    assert "    _json.cpython-311-x86_64-linux-gnu.so!0x4e40\n    scan [_json.cpyth" in whole


def test_processes_of_one_name_are_one() -> None:
    made = Profile()
    for pid in range(300):
        made.add((frame("main", "/bin/grep"),), (), 1, Labels("grep", 1000 + pid))
        made.add((frame("main", "/bin/sh"),), (), 1, Labels("grep", 2000 + pid, process="sh"))
    made.add((frame("loop"),), (), 500, Labels("shop", 7))
    text = "".join(answer.pieces(made))
    assert "3 of 3 stacks, 100 % of 1100 samples" in text
    for line in ("grep (300 PIDs)", "sh (300 PIDs)", "shop (7)"):
        assert f"    -                {line}\n" in text
