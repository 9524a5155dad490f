#include <pthread.h>

static pthread_barrier_t all_done;
static volatile unsigned long sink;

static void __attribute__((noinline)) compute(int rounds) {
    unsigned long sum = 0;
    for (int i = 0; i < rounds; i++) sum = sum * 31 + i, sink = sum;
}

static void __attribute__((noinline)) merge_border(void) {
    compute(60000000);
    sink++;
}

static void __attribute__((noinline)) step_cells(long number) {
    compute(2000000);
    if (number == 0) merge_border();
    pthread_barrier_wait(&all_done);
    sink++;
}

static void *run(void *arg) {
    for (;;) step_cells((long)arg);
}

int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&all_done, 0, 4);
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}
