#include <fcntl.h>
#include <string>
#include <unistd.h>

__attribute__((noinline)) void keep_order(int fd, long number) {
    std::string line = "order " + std::to_string(number) + "\n";
    if (write(fd, line.data(), line.size()) < 0) _exit(1);
}

int main(int, char **argv) {
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_SYNC, 0600);
    for (long number = 0;; number++) keep_order(fd, number);
}
