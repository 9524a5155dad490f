#include "audit.h"
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Request {
    std::string method;
    std::string body;
};

struct Reply {
    int status = 200;
    std::string body;
};

class Service {
  public:
    virtual ~Service() = default;
    virtual Reply call(const Request &request) = 0;
};

class AccountService : public Service {
  public:
    explicit AccountService(AuditLog &audit) : audit_(audit) {}
    Reply call(const Request &request) override {
        audit_.record("balance " + request.body);
        long sum = 0;
        for (int i = 0; i < 20000; i++)
            sum += (i * 31) ^ request.body.size();
        return {200, std::to_string(sum)};
    }

  private:
    AuditLog &audit_;
};

class Server {
  public:
    void add(const std::string &name, std::unique_ptr<Service> service) { services_[name] = std::move(service); }

    void serve_connection(int fd) {
        char buffer[2048];
        for (;;) {
            ssize_t size = read(fd, buffer, sizeof buffer);
            if (size <= 0)
                break;
            std::string text(buffer, size);
            Request request{"Balance", text.substr(0, text.find('\r'))};
            Reply reply = services_.begin()->second->call(request);
            std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" + reply.body;
            if (write(fd, out.data(), out.size()) < 0)
                break;
        }
        close(fd);
    }

    void run(int port) {
        int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
        listen(listener, 128);
        for (;;) {
            int fd = accept(listener, nullptr, nullptr);
            std::thread([this, fd] { serve_connection(fd); }).detach();
        }
    }

  private:
    std::map<std::string, std::unique_ptr<Service>> services_;
};

int main(int, char **argv) {
    AuditLog audit(atoi(argv[2]), atoi(argv[3]) != 0);
    Server server;
    server.add("Account", std::make_unique<AccountService>(audit));
    server.run(atoi(argv[1]));
}
