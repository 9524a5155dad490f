<?php
function ask_price(): string
{
    return file_get_contents('http://127.0.0.1:' . getenv('DOWN') . '/price');
}

echo ask_price();
