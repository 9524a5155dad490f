#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long value;

__attribute__((noinline)) void reload_config(void) {
    pthread_mutex_lock(&mutex);
    for (unsigned long i = 0; i < 60000000; i++) value = value * 31 + i;
    pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) void read_config(void) {
    pthread_mutex_lock(&mutex);
    value++;
    pthread_mutex_unlock(&mutex);
}

static void *serve(void *arg) {
    for (;;) {
        read_config();
        usleep(3000);
    }
    return arg;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, serve, NULL);
    setpriority(PRIO_PROCESS, syscall(SYS_gettid), 19);
    for (;;) {
        reload_config();
        usleep(2000);
    }
}
