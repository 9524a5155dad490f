<?php
$items = [];
for ($n = 0; $n < 50; $n++) {
    $items[] = ['id' => $n, 'name' => "item $n"];
}
header('Content-Type: application/json');
echo json_encode($items);
