<?php
function render_table(): string
{
    $rows = '';
    for ($n = 0; $n < 4000; $n++) {
        $rows .= '<tr><td>' . htmlspecialchars("row $n") . '</td><td>' . md5((string) $n) . '</td></tr>';
    }
    return $rows;
}
echo strlen(render_table());
