#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t *license;

static __attribute__((noinline)) void print_label(void) {
    usleep(25000);
}

static __attribute__((noinline)) void take_license(void) {
    while (sem_wait(license) != 0) {
    }
}

int main(int argc, char **argv) {
    license = sem_open(argv[1], O_CREAT, 0600, 1);
    if (license == SEM_FAILED) {
        perror("sem_open");
        return 1;
    }
    for (;;) {
        take_license();
        print_label();
        sem_post(license);
        usleep(1000);
    }
}
