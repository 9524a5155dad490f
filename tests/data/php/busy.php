<?php
namespace App;
class Work {
  function spin(int $n): int { $x = 0; for ($i = 0; $i < $n; $i++) { $x = ($x * 31 + $i) % 1000003; } return $x; }
  static function sorts(): int {
    $a = [];
    for ($i = 0; $i < 2000; $i++) $a[] = ($i * 7919) % 2003;
    usort($a, fn($x, $y) => $x <=> $y);
    return $a[5];
  }
  function gen(): \Generator { for ($i = 0; $i < 50; $i++) { yield $this->spin(2000); } }
  function outer(): \Generator { yield from $this->gen(); }
}
function texts(): int {
  $n = 0;
  for ($i = 0; $i < 300; $i++) $n += strlen(preg_replace('/[aeiou]/', 'x', str_repeat('hello world', 20)));
  return $n;
}
function naps(int $left): void {
  if ($left) {
    naps($left - 1);
    return;
  }
  time_nanosleep(0, 3_000_000);
}
function waits(): void { naps(2); }
function main(): void {
  $w = new Work;
  while (true) {
    $w->spin(20000);
    Work::sorts();
    texts();
    foreach ($w->outer() as $v);
    waits();
  }
}
echo "ready\n";
main();
