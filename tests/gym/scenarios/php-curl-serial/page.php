<?php
function fetch_part(string $part): string {
    return file_get_contents('http://127.0.0.1:' . getenv('DOWN') . '/' . $part);
}
function render_page(): string {
    $parts = array_map('fetch_part', ['menu', 'news', 'weather']);
    return implode('<br>', $parts);
}
echo render_page();
