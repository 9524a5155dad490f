#include <arpa/inet.h>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

template <typename Price>
class PriceBook {
    mutable std::shared_mutex guard_;
    std::map<int, Price> prices_;

public:
    __attribute__((noinline)) Price quote(int article) const {
        std::shared_lock<std::shared_mutex> held(guard_);
        auto found = prices_.find(article);
        return found == prices_.end() ? Price{} : found->second;
    }
    __attribute__((noinline)) void recalculate(int round) {
        std::unique_lock<std::shared_mutex> held(guard_);
        for (int article = 0; article < 400000; article++)
            prices_[article % 5000] = std::sqrt(double(article) * round) + std::sin(article);
    }
};

static PriceBook<double> book;

static void serve(int connection) {
    char request[2048];
    while (read(connection, request, sizeof request) > 0) {
        std::string body = std::to_string(book.quote(rand() % 5000));
        std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(connection, answer.data(), answer.size()) < 0) break;
    }
    close(connection);
}

int main(int, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (sockaddr *)&address, sizeof address);
    listen(listener, 64);
    std::thread([] {
        for (int round = 1;; round++) {
            book.recalculate(round);
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
        }
    }).detach();
    for (;;) std::thread(serve, accept(listener, nullptr, nullptr)).detach();
}
