#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

volatile uint64_t sink;

static void __attribute__((noinline)) serve_quote(void) {
    for (int i = 0; i < 8000000; i++) sink = sink * 31 + i;
}

int main(void) {
    setpriority(PRIO_PROCESS, 0, 19);
    for (;;) {
        serve_quote();
        usleep(10000);
    }
}
