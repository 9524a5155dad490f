#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int listener) {
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        epoll_wait(epoll, &event, 1, -1);
        int fd = accept(listener, 0, 0);
        if (fd >= 0) {
            write(fd, "ok", 2);
            close(fd);
        }
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bind(listener, (struct sockaddr *)&at, sizeof at);
    listen(listener, 128);
    for (int i = 0; i < 24; i++)
        if (fork() == 0) serve(listener);
    while (wait(0) > 0) {
    }
}
