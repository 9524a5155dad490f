#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

struct Pool {
    std::mutex mutex;
    std::condition_variable filled;
    std::queue<std::packaged_task<int()>> tasks;
    std::thread worker{[this] { run(); }};

    void run() {
        for (;;) {
            std::unique_lock<std::mutex> held(mutex);
            filled.wait(held, [this] { return !tasks.empty(); });
            auto task = std::move(tasks.front());
            tasks.pop();
            held.unlock();
            task();
        }
    }

    std::future<int> submit(std::function<int()> work) {
        std::packaged_task<int()> task(std::move(work));
        auto future = task.get_future();
        std::lock_guard<std::mutex> held(mutex);
        tasks.push(std::move(task));
        filled.notify_one();
        return future;
    }
};

__attribute__((noinline)) int draw_tile() {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return 1;
}

__attribute__((noinline)) int draw_page(Pool &pool) {
    int drawn = 0;
    std::vector<std::future<int>> tiles;
    for (int i = 0; i < 4; i++) tiles.push_back(pool.submit(draw_tile));
    for (auto &tile : tiles) drawn += tile.get();
    return drawn;
}

int main() {
    Pool pool;
    std::vector<std::thread> requests;
    for (int i = 0; i < 4; i++)
        requests.emplace_back([&] {
            for (;;) draw_page(pool);
        });
    for (auto &request : requests) request.join();
}
