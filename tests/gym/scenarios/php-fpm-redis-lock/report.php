<?php

class Store
{
    private $socket;

    public function __construct()
    {
        $this->socket = fsockopen('127.0.0.1', (int) getenv('CACHE'));
    }

    public function ask(string $line): string
    {
        fwrite($this->socket, $line . "\r\n");
        return trim(fgets($this->socket));
    }

    public function take_lock(string $name): void
    {
        while ($this->ask("SET lock:$name 1 NX PX 5000") !== '+OK') {
            usleep(10000);
        }
    }
}

function write_report(): void
{
    usleep(200000);
}

$store = new Store();
$store->take_lock('report');
write_report();
$store->ask('DEL lock:report');
echo 'done';
