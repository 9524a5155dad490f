<?php
class Stock {
    public function __construct(private string $port) {}
    public function askWarehouse(int $article): string {
        $link = stream_socket_client("tcp://127.0.0.1:{$this->port}", $code, $text, 5);
        fwrite($link, "GET /$article HTTP/1.1\r\nHost: warehouse\r\nConnection: close\r\n\r\n");
        $answer = stream_get_contents($link);
        fclose($link);
        return substr($answer, -3);
    }
}
header('Content-Type: text/plain');
echo (new Stock(getenv('STOCK')))->askWarehouse(random_int(1, 99));
