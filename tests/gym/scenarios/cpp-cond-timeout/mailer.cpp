#include <arpa/inet.h>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

struct Letter {
    std::string text;
    bool sent = false;
};

class Mailer {
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Letter>> outbox_;

public:
    Mailer() {
        std::thread([this] { run(); }).detach();
    }

    void deliver(std::string text) {
        auto letter = std::make_shared<Letter>(Letter{std::move(text)});
        std::unique_lock<std::mutex> held(mutex_);
        outbox_.push_back(letter);
        changed_.notify_one();
        while (!letter->sent) changed_.wait_for(held, std::chrono::milliseconds(120));
    }

    void run() {
        std::unique_lock<std::mutex> held(mutex_);
        for (;;) {
            while (outbox_.empty()) changed_.wait_for(held, std::chrono::milliseconds(5));
            auto letter = outbox_.front();
            outbox_.pop_front();
            letter->sent = true; // and nobody is told
        }
    }
};

static Mailer mailer;

static void serve(int connection) {
    char request[2048];
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsent";
    while (read(connection, request, sizeof request) > 0) {
        mailer.deliver(request);
        if (write(connection, answer, sizeof answer - 1) < 0) break;
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
    for (;;) std::thread(serve, accept(listener, nullptr, nullptr)).detach();
}
