<?php
$kept = [];
function remember(array &$kept, int $n): void
{
    $kept[] = str_repeat(chr(65 + $n % 26), 30000);
}

ini_set('memory_limit', '-1');
for ($n = 0; ; $n++) {
    remember($kept, $n);
    usleep(10000);
}
