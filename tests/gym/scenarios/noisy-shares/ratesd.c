#include <stdint.h>
#include <unistd.h>

volatile uint64_t sink;

static void __attribute__((noinline)) compute_rate(void) {
    for (int i = 0; i < 6000000; i++) sink = sink * 31 + i;
}

int main(void) {
    for (;;) {
        compute_rate();
        usleep(5000);
    }
}
