#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void __attribute__((noinline)) print_ticket(int client) {
    char text[256];
    if (read(client, text, sizeof text) > 0) {
        usleep(30000);
        write(client, "ticket\n", 7);
    }
    close(client);
}

int main(int argc, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 1);
    for (;;) print_ticket(accept(listener, 0, 0));
}
