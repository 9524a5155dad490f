#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (256L << 20)
static volatile unsigned long found;

__attribute__((noinline)) void lookup_term(const unsigned char *index, long at) {
    found += index[at];
}

int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    char *block = malloc(1 << 20);
    for (int i = 0; i < 1 << 20; i++) block[i] = (char)rand();
    for (long at = 0; at < SIZE; at += 1 << 20)
        if (write(fd, block, 1 << 20) < 0) return 1;
    fsync(fd);
    unsigned char *index = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    madvise(index, SIZE, MADV_RANDOM);
    for (unsigned long n = 0;; n++) {
        if (n % 3000 == 0) {
            madvise(index, SIZE, MADV_DONTNEED);
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
        lookup_term(index, (long)((unsigned long)rand() * 4096 % SIZE));
    }
}
