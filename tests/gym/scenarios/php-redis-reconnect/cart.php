<?php
function read_cart(int $port, int $user): string
{
    $redis = stream_socket_client("tcp://127.0.0.1:$port");
    fwrite($redis, "GET cart:$user\r\n");
    $answer = fgets($redis);
    fclose($redis);
    return $answer;
}

for ($user = 0; ; $user++) {
    read_cart((int) $argv[1], $user);
    usleep(300);
}
