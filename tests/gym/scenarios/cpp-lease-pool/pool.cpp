#include "pool.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

ConnectionPool::ConnectionPool(int port, int size) {
    for (int i = 0; i < size; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address);
        idle_.push_back(fd);
    }
}

int ConnectionPool::acquire() {
    std::unique_lock<std::mutex> lock(mutex_);
    freed_.wait(lock, [this] { return !idle_.empty(); });
    int fd = idle_.back();
    idle_.pop_back();
    return fd;
}

void ConnectionPool::release(int fd) {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        idle_.push_back(fd);
    }
    freed_.notify_one();
}
