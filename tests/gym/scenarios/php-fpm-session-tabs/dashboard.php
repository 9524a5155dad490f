<?php

function load_widgets(int $seen): array
{
    $widgets = [];
    foreach (['mail', 'news', 'stock'] as $name) {
        $widgets[$name] = fetch_widget($name, $seen);
    }
    return $widgets;
}

function fetch_widget(string $name, int $seen): string
{
    usleep(90000); // the archive takes its time
    return "$name:$seen";
}

function render(array $widgets): string
{
    return implode("\n", $widgets);
}
