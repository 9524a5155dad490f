#include <arpa/inet.h>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace journal {

struct Sink {
    virtual ~Sink() = default;
    virtual void append(const std::string &line) = 0;
};

class DurableSink : public Sink {
    std::mutex mutex_;
    int fd_;

public:
    explicit DurableSink(const char *path) : fd_(open(path, O_CREAT | O_APPEND | O_WRONLY, 0600)) {}

    void append(const std::string &line) override {
        std::scoped_lock held(mutex_);
        if (write(fd_, line.data(), line.size()) > 0) fdatasync(fd_);
    }
};

}

static std::unique_ptr<journal::Sink> sink;

static void serve(int connection) {
    char request[2048];
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for (ssize_t size; (size = read(connection, request, sizeof request)) > 0;) {
        sink->append(std::string(request, size));
        if (write(connection, answer, sizeof answer - 1) < 0) break;
    }
    close(connection);
}

int main(int, char **argv) {
    sink = std::make_unique<journal::DurableSink>(argv[2]);
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
