<?php
// export.php FILE: the catalogue as fixed columns.

class Columns
{
    private $file;

    public function __construct(string $path)
    {
        $this->file = fopen($path, 'w');
    }

    public function column(string $text, int $width): void
    {
        foreach (str_split(str_pad($text, $width)) as $letter) {
            fwrite($this->file, $letter);
        }
    }

    public function end_row(): void
    {
        fwrite($this->file, "\n");
    }

    public function restart(): void
    {
        ftruncate($this->file, 0);
        rewind($this->file);
    }
}

$columns = new Columns($argv[1]);
while (true) {
    for ($number = 0; $number < 20000; $number++) {
        $columns->column("article $number", 20);
        $columns->column((string) ($number / 7), 12);
        $columns->end_row();
    }
    $columns->restart();
}
