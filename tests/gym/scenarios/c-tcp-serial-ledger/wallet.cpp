#include <arpa/inet.h>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

class LedgerClient {
    sockaddr_in server_{};

public:
    explicit LedgerClient(int port) {
        server_.sin_family = AF_INET;
        server_.sin_port = htons(port);
        server_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }

    __attribute__((noinline)) std::string book(const std::string &entry) const {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char answer[64];
        ssize_t size = 0;
        if (connect(fd, (const sockaddr *)&server_, sizeof server_) == 0 && write(fd, entry.data(), entry.size()) > 0)
            size = read(fd, answer, sizeof answer);
        close(fd);
        return std::string(answer, size > 0 ? size : 0);
    }
};

static LedgerClient *ledger;

static void serve(int connection) {
    char request[2048];
    while (read(connection, request, sizeof request) > 0) {
        std::string body = ledger->book("coffee 3.20\n");
        std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(connection, answer.data(), answer.size()) < 0) break;
    }
    close(connection);
}

int main(int, char **argv) {
    ledger = new LedgerClient(atoi(argv[2]));
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (sockaddr *)&address, sizeof address);
    listen(listener, 64);
    for (;;) std::thread(serve, accept(listener, nullptr, nullptr)).detach();
}
