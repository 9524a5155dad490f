<?php
// Sends each record through the checker, and goes on with the next one.

class Checker
{
    private $pipe;

    public function __construct(string $command)
    {
        $this->pipe = popen($command, 'w');
    }

    public function check(array $record): void
    {
        fwrite($this->pipe, json_encode($record) . "\n");
    }
}

function next_record(int $number): array
{
    return ['id' => $number, 'name' => "name $number", 'tags' => range($number, $number + 60)];
}

$checker = new Checker('exec python3 ' . __DIR__ . '/checker.py');
for ($number = 0; ; $number++) {
    $checker->check(next_record($number));
}
