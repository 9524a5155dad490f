<?php
function count_visit(): string
{
    $socket = pfsockopen('127.0.0.1', (int) getenv('CACHE'));
    fwrite($socket, "INCR visits\r\n");
    return trim(fgets($socket));
}

echo count_visit(), str_repeat('hello ', 300);
