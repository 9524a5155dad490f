#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *plan;

static void __attribute__((noinline)) start_job(void) {
    pid_t job = fork();
    if (job == 0) _exit(plan[0]);
    waitpid(job, 0, 0);
}

int main(void) {
    size_t size = 600u << 20;
    plan = malloc(size);
    memset(plan, 1, size);
    for (;;) {
        start_job();
        usleep(20000);
    }
}
