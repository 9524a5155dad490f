#include "pool.h"
#include <arpa/inet.h>
#include <cstdlib>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static std::string fetch_article(int fd) {
    static const char request[] = "GET /article HTTP/1.1\r\nHost: catalogue\r\n\r\n";
    if (write(fd, request, sizeof request - 1) < 0)
        return "";
    char answer[1024];
    ssize_t size = read(fd, answer, sizeof answer);
    return std::string(answer, size > 0 ? size : 0);
}

static std::string render_article(ConnectionPool &pool) {
    int fd = pool.acquire();
    std::string article = fetch_article(fd);
    pool.release(fd);
    return "<p>" + std::to_string(article.size()) + "</p>";
}

static void serve(int client, ConnectionPool &pool) {
    char buffer[2048];
    while (read(client, buffer, sizeof buffer) > 0) {
        std::string body = render_article(pool);
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(client, out.data(), out.size()) < 0)
            break;
    }
    close(client);
}

int main(int, char **argv) {
    ConnectionPool pool(atoi(argv[2]), 2);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(listener, 128);
    for (;;) {
        int client = accept(listener, nullptr, nullptr);
        std::thread(serve, client, std::ref(pool)).detach();
    }
}
