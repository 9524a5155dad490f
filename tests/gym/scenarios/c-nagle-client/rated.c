#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int read_all(int fd, char *to, int size) {
    for (int done = 0; done < size;) {
        int got = read(fd, to + done, size - done);
        if (got <= 0) return -1;
        done += got;
    }
    return size;
}

static void *answer_client(void *arg) {
    int fd = (int)(long)arg;
    char head[16], body[400];
    while (read_all(fd, head, sizeof head) > 0 && read_all(fd, body, sizeof body) > 0)
        write(fd, body, 64);
    close(fd);
    return 0;
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bind(listener, (struct sockaddr *)&at, sizeof at);
    listen(listener, 64);
    for (;;) {
        pthread_t thread;
        long fd = accept(listener, 0, 0);
        pthread_create(&thread, 0, answer_client, (void *)fd);
        pthread_detach(thread);
    }
}
