#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* One client after the other. */
int main(int argc, char **argv) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 64);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        char line[128];
        if (read(client, line, sizeof line) > 0) {
            usleep(60000);
            dprintf(client, "19\n");
        }
        close(client);
    }
}
