<?php
function read_settings(): string {
    $socket = stream_socket_client('unix://' . getenv('SETTINGS'));
    fwrite($socket, "shop\n");
    $text = fgets($socket);
    fclose($socket);
    return $text;
}
echo read_settings();
