#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

class RedisClient {
  public:
    explicit RedisClient(int port) {
        fd_ = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ok_ = connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
    }
    ~RedisClient() { close(fd_); }
    std::string get(const std::string &key) {
        std::string text = "*2\r\n$3\r\nGET\r\n$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
        if (!ok_ || write(fd_, text.data(), text.size()) < 0)
            return "";
        char answer[256];
        ssize_t size = read(fd_, answer, sizeof answer);
        return std::string(answer, size > 0 ? size : 0);
    }

  private:
    int fd_;
    bool ok_;
};

static size_t check_session(int port, int number) {
    RedisClient client(port);
    return client.get("session:" + std::to_string(number)).size();
}

int main(int, char **argv) {
    int port = atoi(argv[1]);
    size_t total = 0;
    for (int number = 0;; number++) {
        total += check_session(port, number % 1000);
        if (number % 4 == 0)
            usleep(2000);
    }
    return total != 0;
}
