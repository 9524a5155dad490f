#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static struct sockaddr_in at = {.sin_family = AF_INET};

static int __attribute__((noinline)) ask_rate(int fd) {
    char head[16] = "RATE", body[400] = "EUR", answer[64];
    write(fd, head, sizeof head);
    write(fd, body, sizeof body);
    return read(fd, answer, sizeof answer);
}

static void *run(void *arg) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    connect(fd, (struct sockaddr *)&at, sizeof at);
    while (ask_rate(fd) > 0) {
    }
    return arg;
}

int main(int argc, char **argv) {
    at.sin_port = htons(atoi(argv[1]));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}
