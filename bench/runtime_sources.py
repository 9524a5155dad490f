"""Programs that know their callers: main calls level1, level2 and leaf, for ever."""

from __future__ import annotations

__all__ = [
    "ADA",
    "CGO",
    "CXX",
    "FIBER",
    "FORTRAN",
    "GENERATORS",
    "GO",
    "IN_MEMORY",
    "JAVASCRIPT",
    "LISP",
    "MEMCPY",
    "NUMBA",
    "OCAML",
    "PYTHON",
    "RUST",
    "C",
    "D",
]

C = """
#define N __attribute__((noinline, noclone))
volatile unsigned long turns;
N long leaf(long n) { for (int i = 0; i < 4000; i++) turns += i ^ n; return n + turns; }
N long level2(long n) { volatile char room[64]; room[n & 63] = 1; return leaf(n) + room[n & 63]; }
N long level1(long n) { return level2(n + 1) + turns; }
int main(void) { for (;;) turns += level1(turns & 7); }
"""
MEMCPY = """
#include <string.h>
#define N __attribute__((noinline, noclone))
static char from[1 << 16], to[1 << 16];
volatile unsigned long turns;
N long leaf(long n) { memcpy(to, from, 4096 + n); return n + to[n]; }
N long level2(long n) { volatile char room[64]; room[n & 63] = 1; return leaf(n) + room[n & 63]; }
N long level1(long n) { return level2(n + 1) + turns; }
int main(void) { for (;;) turns += level1(turns & 7); }
"""
FIBER = """
#include <boost/context/fiber.hpp>
#define N __attribute__((noinline, noclone))
using boost::context::fiber;
volatile unsigned long turns;
N long leaf(long n) { for (int i = 0; i < 4000; i++) turns = turns + (i ^ n); return n + turns; }
N long level2(long n) { return leaf(n) + turns; }
N long level1(long n) { return level2(n + 1) + turns; }
int main() {
    fiber work([](fiber &&back) {
        for (;;) {
            turns = turns + level1(turns & 7);
            back = std::move(back).resume();
        }
        return std::move(back);
    });
    for (;;) work = std::move(work).resume();
}
"""
CXX = """
#include <functional>
struct Work { virtual long level2(long n) __attribute__((noinline)); };
volatile unsigned long turns;
__attribute__((noinline)) long leaf(long n) {
    for (int i = 0; i < 4000; i++) turns = turns + (i ^ n);
    return n + turns;
}
long Work::level2(long n) { return leaf(n) + turns; }
__attribute__((noinline)) long level1(const std::function<long(long)> &f, long n) {
    try { return f(n) + turns; } catch (...) { return 0; }
}
int main() {
    Work work;
    for (;;) turns = turns + level1([&](long n) { return work.level2(n) + 1; }, turns & 7);
}
"""
RUST = """
use std::hint::black_box;
#[inline(never)] fn leaf(n: u64) -> u64 {
    let mut sum = n;
    for i in 0..4000u64 { sum = black_box(sum ^ i); }
    sum
}
#[inline(never)] fn level2(n: u64) -> u64 { black_box(leaf(n)) + 1 }
#[inline(never)] fn level1(n: u64) -> u64 { black_box(level2(n + 1)) + 1 }
fn main() { let mut n = 0; loop { n = black_box(level1(n & 7)); } }
"""
GO = """
package main

var turns uint64

//go:noinline
func leaf(n uint64) uint64 {
    for i := uint64(0); i < 4000; i++ { turns += i ^ n }
    return n + turns
}

//go:noinline
func level2(n uint64) uint64 { return leaf(n) + turns }

//go:noinline
func level1(n uint64) uint64 { return level2(n+1) + turns }

func main() { for { turns += level1(turns & 7) } }
"""
CGO = """
package main

/*
volatile unsigned long turns;
__attribute__((noinline)) long leaf(long n) {
    for (int i = 0; i < 400000; i++) turns += i ^ n;
    return n + turns;
}
__attribute__((noinline)) long in_c(long n) { return leaf(n) + turns; }
*/
import "C"

//go:noinline
func level2(n int64) int64 { return int64(C.in_c(C.long(n))) + 1 }

//go:noinline
func level1(n int64) int64 { return level2(n+1) + 1 }

func main() { n := int64(0); for { n = level1(n & 7) } }
"""
OCAML = """
let turns = ref 0
let [@inline never] leaf n = for i = 0 to 4000 do turns := !turns lxor (i + n) done; !turns + n
let [@inline never] level2 n = leaf n + !turns
let [@inline never] level1 n = 1 + List.fold_left (fun sum k -> sum + level2 k) 0 [n; n + 1]
let () = while true do turns := level1 (!turns land 7) done
"""
FORTRAN = """
module work
  integer(8), volatile :: turns = 0
contains
  recursive integer(8) function leaf(n) result(r)
    integer(8), value :: n
    integer :: i
    do i = 1, 4000
      turns = ieor(turns, n + i)
    end do
    r = turns + n
  end function
  recursive integer(8) function level2(n) result(r)
    integer(8), value :: n
    r = leaf(n) + turns
  end function
  recursive integer(8) function level1(n) result(r)
    integer(8), value :: n
    r = level2(n + 1) + turns
  end function
end module
program main
  use work
  do
    turns = level1(iand(turns, 7_8))
  end do
end program
"""
ADA = """
procedure Hot is
   Turns : Long_Integer := 0;
   pragma Volatile (Turns);
   function Leaf (N : Long_Integer) return Long_Integer with No_Inline;
   function Level2 (N : Long_Integer) return Long_Integer with No_Inline;
   function Level1 (N : Long_Integer) return Long_Integer with No_Inline;
   function Leaf (N : Long_Integer) return Long_Integer is
   begin
      for I in Long_Integer range 1 .. 4000 loop
         Turns := (Turns + I * N) mod 1000003;
      end loop;
      return Turns + N;
   end Leaf;
   function Level2 (N : Long_Integer) return Long_Integer is (Leaf (N) + Turns);
   function Level1 (N : Long_Integer) return Long_Integer is (Level2 (N + 1) + Turns);
begin
   loop
      Turns := Level1 (Turns mod 8) mod 1000003;
   end loop;
end Hot;
"""
D = """
import core.volatile;
__gshared ulong turns;
extern (C) pragma(inline, false) ulong leaf(ulong n) {
    foreach (i; 0 .. 4000) volatileStore(&turns, volatileLoad(&turns) ^ (n + i));
    return turns + n;
}
extern (C) pragma(inline, false) ulong level2(ulong n) { return leaf(n) + turns; }
extern (C) pragma(inline, false) ulong level1(ulong n) { return level2(n + 1) + turns; }
void main() { for (;;) turns = level1(turns & 7); }
"""
PYTHON = """
def leaf(n):
    for i in range(4000):
        n ^= i
    return n
def level2(n):
    return leaf(n) + 1
def level1(n):
    return level2(n) + 1
def deeper(left):
    while not left:
        level1(7)
    deeper(left - 1)
def main(depth):
    deeper(depth)
import sys
sys.setrecursionlimit(5000)
main(int(sys.argv[1]))
"""
GENERATORS = """
import sys
sys.setrecursionlimit(5000)
def leaf(n):
    for i in range(4000):
        n ^= i
    return n
def level2(n):
    yield leaf(n)
def level1(n):
    yield from level2(n)
def deeper(left):
    if left:
        for n in deeper(left - 1):
            yield n
    while not left:
        for n in level1(7):
            yield n
def main(depth):
    for n in deeper(depth):
        pass
main(int(sys.argv[1]))
"""
NUMBA = """
import numba
@numba.njit
def leaf(n):
    for i in range(400000):
        n ^= i * n
    return n
@numba.njit
def in_machine_code(n):
    return leaf(n) + 1
def level2(n):
    return in_machine_code(n) + 1
def level1(n):
    return level2(n) + 1
def main():
    while True:
        level1(7)
main()
"""
IN_MEMORY = """
import os, sys
fd = os.memfd_create("in_memory")
with open(sys.argv[1], "rb") as file:
    os.write(fd, file.read())
os.execve(fd, ["in_memory"], os.environ)
"""
JAVASCRIPT = """
let turns = 0;
function leaf(n) { for (let i = 0; i < 4000; i++) turns ^= i + n; return turns; }
function level2(n) { return leaf(n) + 1; }
function level1(n) { return level2(n) + 1; }
function deeper(left) { return left ? deeper(left - 1) + 1 : level1(7); }
for (;;) turns ^= deeper(30);
"""
LISP = """
(declaim (optimize (debug 1)) (notinline leaf level2 level1 deeper))
(defvar *turns* 0)
(defun leaf (n) (dotimes (i 4000) (setf *turns* (logxor *turns* (+ i n)))) (+ n (logand *turns* 7)))
(defun level2 (n) (+ 1 (leaf n)))
(defun level1 (n) (+ 1 (level2 n)))
(defun deeper (left) (+ 1 (if (zerop left) (level1 7) (deeper (- left 1)))))
(defun main () (loop (deeper 30)))
(main)
"""
