#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

namespace {

struct Session {
    std::string user;
    char history[9000];
};

class SessionTable {
    std::unordered_map<std::string, std::unique_ptr<Session>> sessions_;

public:
    __attribute__((noinline)) void touch(const std::string &key) {
        auto session = std::make_unique<Session>();
        session->user = key;
        for (char &byte : session->history) byte = 'x';
        sessions_[key] = std::move(session);
    }
};

}

int main() {
    SessionTable table;
    for (long visit = 0;; visit++) {
        table.touch("visitor-" + std::to_string(visit));
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}
