<?php
function load_translations(): array
{
    $file = sys_get_temp_dir() . "/gym-translations.ser";
    if (!file_exists($file)) {
        $table = [];
        for ($i = 0; $i < 40000; $i++) {
            $table["label.$i"] = ["de" => "Wort $i", "en" => "word $i"];
        }
        file_put_contents($file, serialize($table));
    }
    return unserialize(file_get_contents($file));
}

function translate(string $label): string
{
    return load_translations()[$label]["de"];
}

echo translate("label." . random_int(0, 39999)), translate("label.7");
