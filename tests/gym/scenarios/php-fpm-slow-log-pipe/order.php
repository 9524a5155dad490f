<?php
function write_log(string $text): void {
    $log = fopen(getenv('FIFO'), 'w');
    fwrite($log, str_repeat($text, 800));
    fclose($log);
}
write_log("order 1 has been placed\n");
echo 'ok';
