#include <arpa/inet.h>
#include <future>
#include <numeric>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

template <typename Score>
struct Ranker {
    Score rank(int documents) {
        std::vector<std::future<Score>> scores;
        for (int n = 0; n < documents; n++)
            scores.push_back(std::async(std::launch::async, [n] { return Score(n) * 0.5; }));
        Score total = 0;
        for (auto &score : scores) total += score.get();
        return total;
    }
};

static void serve(int connection) {
    char request[2048];
    Ranker<double> ranker;
    while (read(connection, request, sizeof request) > 0) {
        std::string body = std::to_string(ranker.rank(60));
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
    for (;;) std::thread(serve, accept(listener, nullptr, nullptr)).detach();
}
