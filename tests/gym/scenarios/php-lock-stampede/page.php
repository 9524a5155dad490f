<?php
function build_page(): string {
    usleep(80000);
    return str_repeat('<p>page</p>', 50);
}
function cached_page(): string {
    $file = fopen(getenv('CACHE'), 'c+');
    flock($file, LOCK_EX);
    $age = microtime(true) - (float) fgets($file);
    if ($age > 0.05) {
        $page = build_page();
        rewind($file);
        fwrite($file, microtime(true) . "\n" . $page);
    }
    flock($file, LOCK_UN);
    fclose($file);
    return $page ?? 'kept';
}
echo cached_page();
