<?php
function wait_for_export(): void {
    $flag = getenv('FLAG');
    while (!is_file($flag)) {
        usleep(2000);
        clearstatcache(true, $flag);
    }
}
wait_for_export();
echo 'done';
