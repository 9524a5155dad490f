#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <netinet/in.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>

class EventLoop {
  public:
    using Callback = std::function<void(int)>;
    EventLoop() : epoll_(epoll_create1(0)) {}

    void on_readable(int fd, Callback callback) {
        callbacks_[fd] = std::move(callback);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }

    void forget(int fd) {
        callbacks_.erase(fd);
        close(fd);
    }

    void run() {
        epoll_event events[64];
        for (;;) {
            int count = epoll_wait(epoll_, events, 64, -1);
            for (int i = 0; i < count; i++) {
                auto callback = callbacks_.find(events[i].data.fd);
                if (callback != callbacks_.end())
                    Callback(callback->second)(events[i].data.fd);
            }
        }
    }

  private:
    int epoll_;
    std::unordered_map<int, Callback> callbacks_;
};

static int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address);
    return fd;
}

class Gateway {
  public:
    Gateway(EventLoop &loop, int upstream) : loop_(loop), upstream_(connect_to(upstream)) {}

    void accept_client(int listener) {
        int client = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
        if (client >= 0)
            loop_.on_readable(client, [this](int fd) { read_request(fd); });
    }

  private:
    void read_request(int fd) {
        char buffer[2048];
        ssize_t size = read(fd, buffer, sizeof buffer);
        if (size <= 0) {
            loop_.forget(fd);
            return;
        }
        std::string body = check_token();
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        (void)!write(fd, out.data(), out.size());
    }

    std::string check_token() {
        static const char request[] = "GET /token HTTP/1.1\r\nHost: auth\r\n\r\n";
        (void)!write(upstream_, request, sizeof request - 1);
        char answer[1024];
        ssize_t size = read(upstream_, answer, sizeof answer);
        return size > 0 ? "valid" : "invalid";
    }

    EventLoop &loop_;
    int upstream_;
};

int main(int, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(listener, 128);
    EventLoop loop;
    Gateway gateway(loop, atoi(argv[2]));
    loop.on_readable(listener, [&](int fd) { gateway.accept_client(fd); });
    loop.run();
}
