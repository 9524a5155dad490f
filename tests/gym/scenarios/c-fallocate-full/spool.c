#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spool {
    const char *folder;
    unsigned next;
};

static int reserve_segment(struct spool *spool, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/segment.%06u", spool->folder, spool->next);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    if (fd < 0)
        return -1;
    if (fallocate(fd, 0, 0, size) != 0) {
        close(fd);
        unlink(path);
        return -1;
    }
    spool->next++;
    return fd;
}

static void accept_message(struct spool *spool, const char *text) {
    int fd;
    while ((fd = reserve_segment(spool, 256 * 1024)) < 0)
        usleep(3000);
    if (write(fd, text, strlen(text)) < 0)
        perror("write");
    close(fd);
}

int main(int argc, char **argv) {
    (void)argc;
    struct spool spool = {argv[1], 0};
    for (;;) {
        accept_message(&spool, "Subject: reminder\n\nPlease pay.\n");
        usleep(1000);
    }
}
