<?php

class Forecast
{
    public function today(): string
    {
        return file_get_contents('http://127.0.0.1:' . getenv('DOWN') . '/');
    }
}

echo (new Forecast())->today();
