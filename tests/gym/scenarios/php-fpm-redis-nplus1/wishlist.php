<?php
function ask($cache, string $key): string
{
    fwrite($cache, "*2\r\n$3\r\nGET\r\n$" . strlen($key) . "\r\n$key\r\n");
    return fgets($cache);
}

function list_wishes($cache): int
{
    $found = 0;
    for ($item = 0; $item < 300; $item++) {
        $found += strlen(ask($cache, "wish:$item"));
    }
    return $found;
}

$cache = stream_socket_client("unix://" . getenv("CACHE"));
echo list_wishes($cache);
