<?php
// transfer.php FOLDER FROM TO: books between two accounts, each a file.
[, $folder, $from, $to] = $argv;

class Account
{
    private $file;

    public function __construct(private string $path)
    {
        $this->file = fopen($path, 'c+');
    }

    public function lock(): void
    {
        flock($this->file, LOCK_EX);
    }

    public function unlock(): void
    {
        flock($this->file, LOCK_UN);
    }

    public function book(int $cents): void
    {
        rewind($this->file);
        $sum = (int) stream_get_contents($this->file);
        rewind($this->file);
        fwrite($this->file, sprintf('%12d', $sum + $cents));
    }
}

function transfer(Account $from, Account $to, int $cents): void
{
    $from->lock();
    usleep(2000);
    $to->lock();
    $from->book(-$cents);
    $to->book($cents);
    $to->unlock();
    $from->unlock();
}

$one = new Account("$folder/account-$from");
$two = new Account("$folder/account-$to");
while (true) {
    transfer($one, $two, random_int(1, 500));
    usleep(1000);
}
