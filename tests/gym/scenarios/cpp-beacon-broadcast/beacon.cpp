#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Node {
    int fd;
    unsigned long seen = 0;
};

static int open_socket(int port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (port)
        bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address);
    return fd;
}

__attribute__((noinline)) static void listen_beacons(Node *node) {
    char buffer[256];
    while (recv(node->fd, buffer, sizeof buffer, 0) > 0)
        node->seen++;
}

__attribute__((noinline)) static void send_beacons(int port) {
    int fd = open_socket(0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = inet_addr("127.255.255.255");
    for (unsigned long number = 0;; number++) {
        std::string text = "beacon " + std::to_string(number);
        sendto(fd, text.data(), text.size(), 0, reinterpret_cast<sockaddr *>(&address), sizeof address);
        if (number % 64 == 0)
            usleep(1000);
    }
}

int main(int, char **argv) {
    int port = atoi(argv[1]);
    if (argv[2][0] == 's')
        send_beacons(port);
    std::vector<Node> nodes(4);
    std::vector<std::thread> threads;
    for (Node &node : nodes) {
        node.fd = open_socket(port);
        threads.emplace_back(listen_beacons, &node);
    }
    for (auto &thread : threads)
        thread.join();
}
