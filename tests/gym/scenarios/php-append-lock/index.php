<?php

class AuditTrail
{
    public function __construct(private string $path)
    {
    }

    public function append(string $text): void
    {
        $file = fopen($this->path, 'a');
        flock($file, LOCK_EX);
        fwrite($file, $text . "\n");
        $this->rotate();
        fclose($file);
    }

    private function rotate(): void
    {
        usleep(60000);
    }
}

(new AuditTrail(getenv('TRAIL')))->append('visit');
echo 'ok';
