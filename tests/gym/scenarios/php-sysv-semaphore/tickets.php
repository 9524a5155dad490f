<?php
function next_ticket($semaphore) {
    sem_acquire($semaphore);
    usleep(30000);
    sem_release($semaphore);
}
$semaphore = sem_get(ftok(__FILE__, "t"), 1, 0600, true);
for ($i = 0; $i < 6; $i++) {
    if (pcntl_fork() == 0) {
        while (true) {
            next_ticket($semaphore);
        }
    }
}
while (true) pcntl_wait($status);
