#include <arpa/inet.h>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

struct Job {
    int seed;
    std::string picture;
    bool is_done = false;
};

class Renderer {
  public:
    Renderer() : worker_(&Renderer::run, this) {}
    std::string await_picture(int seed) {
        Job job{seed, "", false};
        std::unique_lock<std::mutex> lock(mutex_);
        jobs_.push_back(&job);
        posted_.notify_one();
        done_.wait(lock, [&] { return job.is_done; });
        return job.picture;
    }

  private:
    __attribute__((noinline)) static double trace_rays(int seed) {
        double sum = seed;
        for (int i = 0; i < 600000; i++)
            sum += std::sin(sum) * std::cos(i);
        return sum;
    }
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            posted_.wait(lock, [&] { return !jobs_.empty(); });
            Job *job = jobs_.front();
            jobs_.pop_front();
            lock.unlock();
            std::string picture = std::to_string(trace_rays(job->seed));
            lock.lock();
            job->picture = picture;
            job->is_done = true;
            done_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable posted_, done_;
    std::deque<Job *> jobs_;
    std::thread worker_;
};

static Renderer *renderer;

static void session(int client) {
    char buffer[2048];
    int seed = client;
    while (read(client, buffer, sizeof buffer) > 0) {
        std::string body = renderer->await_picture(seed++);
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(client, out.data(), out.size()) < 0)
            break;
    }
    close(client);
}

int main(int, char **argv) {
    renderer = new Renderer;
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
