<?php
function read_item($redis, int $item): string
{
    fwrite($redis, "GET item:$item\r\n");
    return fgets($redis);
}

$redis = stream_socket_client("tcp://127.0.0.1:" . getenv("REDIS"));
for ($item = 0; $item < 150; $item++) {
    read_item($redis, $item);
}
fclose($redis);
echo "ok";
