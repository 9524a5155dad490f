#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <sys/wait.h>

static __attribute__((noinline)) unsigned scale_image(unsigned seed) {
    size_t size = 12 << 20;
    unsigned char *scratch = malloc(size);
    memset(scratch, (int)seed, size);
    unsigned sum = scratch[seed % size];
    free(scratch);
    return sum;
}

static void serve(int client) {
    char request[2048];
    unsigned seed = 0;
    while (read(client, request, sizeof request) > 0)
        dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%03u", scale_image(seed++) % 1000);
    close(client);
}

int main(int argc, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 64);
    for (int worker = 0; worker < 3; worker++)
        if (fork() == 0)
            for (;;) serve(accept(listener, NULL, NULL));
    while (wait(NULL) > 0) {
    }
}
