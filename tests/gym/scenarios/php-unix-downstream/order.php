<?php
function ask_stock($socket): string
{
    fwrite($socket, "stock 7\n");
    return fgets($socket);
}

$socket = stream_socket_client("unix://$argv[1]");
while (true) {
    ask_stock($socket);
}
