<?php
$context = stream_context_create(["http" => ["header" => "Connection: close"]]);
echo file_get_contents("http://127.0.0.1:" . getenv("DOWN") . "/stock", false, $context);
