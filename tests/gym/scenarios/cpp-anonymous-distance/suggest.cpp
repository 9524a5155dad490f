#include <algorithm>
#include <arpa/inet.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

std::vector<std::string> words;

__attribute__((noinline)) int edit_distance(const std::string &left, const std::string &right) {
    std::vector<int> row(right.size() + 1);
    for (size_t j = 0; j <= right.size(); j++) row[j] = int(j);
    for (size_t i = 1; i <= left.size(); i++) {
        int corner = row[0]++;
        for (size_t j = 1; j <= right.size(); j++) {
            int up = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (left[i - 1] != right[j - 1])});
            corner = up;
        }
    }
    return row.back();
}

std::string nearest(const std::string &word) {
    return *std::min_element(words.begin(), words.end(), [&](const auto &a, const auto &b) {
        return edit_distance(word, a) < edit_distance(word, b);
    });
}

void serve(int connection) {
    char request[2048];
    for (ssize_t size; (size = read(connection, request, sizeof request)) > 0;) {
        std::string body = nearest(std::string(request, std::min<ssize_t>(size, 20)));
        std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(connection, answer.data(), answer.size()) < 0) break;
    }
    close(connection);
}

}

int main(int, char **argv) {
    for (int n = 0; n < 12000; n++) words.push_back("suggestion" + std::to_string(n * 7919));
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
