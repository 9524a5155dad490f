#include <arpa/inet.h>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

class WorkerPool {
  public:
    explicit WorkerPool(int size) {
        for (int i = 0; i < size; i++)
            std::thread([this] { run(); }).detach();
    }
    std::future<std::string> submit(int number) {
        auto promise = std::make_shared<std::promise<std::string>>();
        {
            std::lock_guard<std::mutex> guard(mutex_);
            jobs_.emplace_back(number, promise);
        }
        posted_.notify_one();
        return promise->get_future();
    }

  private:
    using Job = std::pair<int, std::shared_ptr<std::promise<std::string>>>;
    Job take() {
        std::unique_lock<std::mutex> lock(mutex_);
        posted_.wait(lock, [this] { return !jobs_.empty(); });
        Job job = jobs_.front();
        jobs_.pop_front();
        return job;
    }
    void run() {
        for (;;) {
            Job job = take();
            std::string text;
            for (int i = 0; i < 2000; i++)
                text = std::to_string(job.first * i);
            job.second->set_value(text);
        }
    }
    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<Job> jobs_;
};

static WorkerPool *workers;

static void session(int client) {
    char buffer[2048];
    while (read(client, buffer, sizeof buffer) > 0) {
        std::string body = workers->submit(client).get();
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(client, out.data(), out.size()) < 0)
            break;
    }
    close(client);
}

int main(int, char **argv) {
    workers = new WorkerPool(6);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(listener, 128);
    for (;;)
        std::thread(session, accept(listener, nullptr, nullptr)).detach();
}
