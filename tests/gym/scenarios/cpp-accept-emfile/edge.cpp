#include <arpa/inet.h>
#include <cstdlib>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

class Loop {
  public:
    explicit Loop(int port) {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(listener_, reinterpret_cast<sockaddr *>(&address), sizeof address);
        listen(listener_, 256);
        epoll_ = epoll_create1(0);
        watch(listener_);
    }

    void run() {
        epoll_event events[32];
        for (;;) {
            int count = epoll_wait(epoll_, events, 32, -1);
            for (int i = 0; i < count; i++) {
                if (events[i].data.fd == listener_)
                    accept_client();
                else
                    read_client(events[i].data.fd);
            }
        }
    }

  private:
    void watch(int fd) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }

    __attribute__((noinline)) void accept_client() {
        int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
        if (client < 0)
            return;
        watch(client);
    }

    __attribute__((noinline)) void read_client(int fd) {
        char buffer[512];
        if (read(fd, buffer, sizeof buffer) == 0)
            close(fd);
    }

    int listener_, epoll_;
};

int main(int, char **argv) {
    rlimit limit{64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    Loop(atoi(argv[1])).run();
}
