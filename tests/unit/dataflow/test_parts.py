"""Variables that are in several registers, and pointers that are the only member of a class."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.claims import Claim
from purebpf.dataflow.locations import parse_pieces
from tests.unit.dataflow.test_golden import claims_of, flow_of, read

LISTS = """
#include <memory>
#include <vector>
struct Order { long id; char gap[200]; int quantity; };
extern "C" __attribute__((noinline)) long walk(std::vector<std::unique_ptr<Order>> &orders) {
  long sum = 0;
  for (auto &order : orders)
    sum += order->quantity;
  return sum;
}
int main(int argc, char **) {
  std::vector<std::unique_ptr<Order>> orders(argc);
  return argc > 100 ? walk(orders) : 0;
}
"""

SLICES = """
pub struct Order { pub id: u64, pub gap: [u32; 50], pub quantity: u16 }
#[no_mangle] #[inline(never)]
pub extern "Rust" fn walk(orders: &[Order], from: usize) -> u64 {
    let mut sum = 0;
    for order in &orders[from..] { sum += order.quantity as u64; }
    sum
}
fn main() {
    let orders: Vec<Order> = Vec::new();
    std::process::exit(walk(&orders, std::env::args().count() - 1) as i32);
}
"""


def test_the_registers_of_a_value_have_their_places() -> None:
    piece, half = b"\x93\x08", b"\x93\x04"  # DW_OP_piece
    rdi, rsi = b"\x55", b"\x54"  # DW_OP_reg5, DW_OP_reg4
    computed = b"\x75\x08\x9f"  # DW_OP_breg5 8, DW_OP_stack_value
    assert parse_pieces(rdi + piece + rsi + piece) == [(5, 0), (4, 8)]
    assert parse_pieces(rdi + piece + computed + piece) == [(5, 0)]
    assert parse_pieces(piece + rsi + piece) == [(4, 8)]  # the first is optimized out
    assert parse_pieces(rdi + half + rsi + half) == []
    assert parse_pieces(rdi) == []


@pytest.mark.parametrize(
    ("compiler", "suffix", "source"),
    [
        (("g++", "-O2", "-g"), "cpp", LISTS),
        (("g++", "-O2", "-g", "-flto"), "cpp", LISTS),
        (("clang++-19", "-O2", "-g"), "cpp", LISTS),
        (("rustc", "-g", "-C", "opt-level=2"), "rs", SLICES),
    ],
)
def test_elements_of_lists_and_slices_are_known(
    compiler: tuple[str, ...], suffix: str, source: str, tmp_path: Path
) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    path, target = tmp_path / f"list.{suffix}", tmp_path / "list"
    path.write_text(source)
    subprocess.run([*compiler, "-o", target, path], check=True, timeout=120, capture_output=True)
    program, functions = read(target.read_bytes())
    flow = flow_of(program, functions["walk"])
    claims = [one for one in claims_of(flow) if isinstance(one, Claim)]
    members = {f"{one.name.rpartition('::')[2]}.{one.member}" for one in claims}
    assert any(member.startswith("Order.") and "quantity" in member for member in members), members
    assert not any("gap" in member or "id" in member for member in members), members
