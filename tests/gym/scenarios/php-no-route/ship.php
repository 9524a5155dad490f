<?php
function askCarrier($order) {
    $socket = @stream_socket_client("tcp://10.255.255.1:8443", $errno, $message, 1.0);
    if ($socket) fclose($socket);
    return $message;
}
for ($order = 1; ; $order++) {
    askCarrier($order);
    usleep(20000);
}
