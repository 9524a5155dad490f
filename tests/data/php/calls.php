<?php
namespace Shop;
function stay(): int {
    global $warm;
    if ($warm) return 1;
    $calls = array_map(fn($call) => [
        (isset($call['class']) ? strtok($call['class'], "\0") . '::' : '') . $call['function'],
        $call['file'] ?? '', $call['line'] ?? 0], debug_backtrace());
    fwrite(STDOUT, json_encode([__FILE__, __LINE__ + 1, $calls], JSON_THROW_ON_ERROR) . "\n");
    fgets(STDIN);
    return 1;
}

trait Counts {
    public function counted(int $left): int { return descend($left); }
}
class Box implements \ArrayAccess, \Countable {
    use Counts;
    public function __construct(public int $left, bool $goes = false) { if ($goes) descend($left); }
    public function __toString(): string { return (string) descend($this->left); }
    public function __get(string $name): int { return descend($this->left); }
    public function __call(string $name, array $given): int { return descend($given[0]); }
    public static function __callStatic(string $name, array $given): int { return descend($given[0]); }
    public function __invoke(int $left): int { return descend($left); }
    public function count(): int { return descend($this->left); }
    public function offsetExists(mixed $at): bool { return true; }
    public function offsetGet(mixed $at): mixed { return descend($at); }
    public function offsetSet(mixed $at, mixed $value): void {}
    public function offsetUnset(mixed $at): void {}
    public static function make(int $left): int { return descend($left); }
    public function __destruct() { global $falls; if ($falls) { $falls = false; descend($this->left); } }
}
function inner(int $left): \Generator { yield descend($left); }
function middle(int $left): \Generator { yield from inner($left); }
function outer(int $left): \Generator { yield 0; yield from middle($left); }

function descend(int $left): int {
    if ($left <= 0) return stay();
    $below = $left - 1;
    switch ($left % 24) {
        case 0: return descend($below) + 1;
        case 1: $list = [3, 1]; usort($list, function ($a, $b) use ($below) { descend($below); return $a <=> $b; }); return 1;
        case 2: return array_map('Shop\descend', [$below])[0];
        case 3: return Box::make($below);
        case 4: return array_sum(array_map(fn($x) => descend($x), [$below]));
        case 5: return (int) (string) new Box($below);
        case 6: return (int) preg_replace_callback('/b/', fn() => descend($below), 'b');
        case 7: return call_user_func_array([new Box($below), 'counted'], [$below]);
        case 8: foreach (inner($below) as $value) return $value; return 0;
        case 9: $sum = 0; foreach (outer($below) as $value) $sum += $value; return $sum;
        case 10: return (new Box($below))->missing;
        case 11: return (new Box($below))->call($below);
        case 12: return Box::callStatic($below);
        case 13: return (new Box($below))($below);
        case 14: return count(new Box($below));
        case 15: return (new Box($below))[$below];
        case 16: new Box($below, true); return 1;
        case 17: return include __DIR__ . '/included.php';
        case 18: return eval("\n\nreturn \\Shop\\descend($below);");
        case 19: try { throw new \Exception('x'); } catch (\Exception $e) { return descend($below); }
        case 20: try { return 1; } finally { descend($below); }
        case 21: $made = new class { function run(int $left): int { return descend($left); } }; return $made->run($below);
        case 22: return array_reduce([1], fn($sum, $x) => descend($below), 0);
        default: return iterator_apply($it = new \ArrayIterator([1]), fn() => !descend($below));
    }
}

[, $turns, $depth] = array_map('intval', $argv);
$warm = true;
$falls = false;
for ($turn = 0; $turn < $turns; $turn++) descend($turn % 26);
$warm = false;
descend($depth);
