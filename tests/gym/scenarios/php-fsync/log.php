<?php
$file = fopen($argv[1], "a");
function record_event($file) {
    fwrite($file, str_repeat("event ", 600));
    fsync($file);
}
while (true) {
    record_event($file);
    if (ftell($file) > 16000000) ftruncate($file, 0);
}
