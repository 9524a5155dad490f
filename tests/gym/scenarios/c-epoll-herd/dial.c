#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    prctl(PR_SET_NAME, "loadgen");
    for (;;) {
        char answer[8];
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        connect(fd, (struct sockaddr *)&at, sizeof at);
        read(fd, answer, sizeof answer);
        close(fd);
        usleep(3000);
    }
}
