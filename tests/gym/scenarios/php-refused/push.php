<?php
while (true) {
    $socket = @fsockopen("127.0.0.1", (int) $argv[1], $code, $text, 1);
    usleep(40000);
}
