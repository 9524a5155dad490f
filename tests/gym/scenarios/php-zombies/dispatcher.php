<?php
// dispatcher.php FOLDER: starts a process for each job that lies in the folder.

class Dispatcher
{
    private int $count = 0;

    public function __construct(private string $folder)
    {
    }

    public function run(): never
    {
        while (true) {
            foreach (glob("$this->folder/*.job") as $job) {
                $this->start_job($job);
            }
            usleep(60000);
        }
    }

    private function start_job(string $job): void
    {
        $pid = pcntl_fork();
        if ($pid === 0) {
            file_put_contents("$job.done", md5_file($job));
            exit(0);
        }
        $this->count++;
    }
}

(new Dispatcher($argv[1]))->run();
