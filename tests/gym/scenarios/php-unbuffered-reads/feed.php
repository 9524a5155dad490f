<?php
function read_line($feed): string
{
    for ($line = ''; ($char = fread($feed, 1)) !== "\n"; $line .= $char) {
        if ($char === '' || $char === false) {
            rewind($feed);
        }
    }
    return $line;
}

$feed = fopen($argv[1], 'r');
stream_set_read_buffer($feed, 0);
stream_set_chunk_size($feed, 1);
while (true) {
    read_line($feed);
}
