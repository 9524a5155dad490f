<?php
// Follows several feeds in one process.

class FeedReader
{
    private array $streams = [];
    public int $lines = 0;

    public function follow(string $address): void
    {
        $stream = stream_socket_client($address);
        stream_set_blocking($stream, false);
        $this->streams[] = $stream;
    }

    public function pump(): void
    {
        foreach ($this->streams as $stream) {
            $this->take_lines($stream);
        }
    }

    private function take_lines($stream): void
    {
        while (($line = fgets($stream)) !== false) {
            $this->lines += strlen($line) > 0 ? 1 : 0;
        }
    }
}

$reader = new FeedReader();
foreach (array_slice($argv, 1) as $port) {
    $reader->follow("tcp://127.0.0.1:$port");
}
while (true) {
    $reader->pump();
}
