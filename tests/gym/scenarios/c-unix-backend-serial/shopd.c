#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *backend;

static __attribute__((noinline)) int ask_tax(int cents) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, backend, sizeof address.sun_path - 1);
    char line[64] = "";
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        dprintf(fd, "%d\n", cents);
        if (read(fd, line, sizeof line - 1) < 0) perror("read");
    }
    close(fd);
    return atoi(line);
}

static void *serve(void *arg) {
    int client = (int)(intptr_t)arg;
    char request[2048];
    while (read(client, request, sizeof request) > 0)
        dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%03d", ask_tax(995));
    close(client);
    return NULL;
}

int main(int argc, char **argv) {
    backend = argv[2];
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 64);
    for (;;) {
        pthread_t thread;
        int client = accept(listener, NULL, NULL);
        pthread_create(&thread, NULL, serve, (void *)(intptr_t)client);
        pthread_detach(thread);
    }
}
