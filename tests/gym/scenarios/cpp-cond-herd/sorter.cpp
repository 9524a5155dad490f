#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex guard;
static std::condition_variable arrived;
static std::deque<int> belt;
static std::atomic<long> done;

__attribute__((noinline)) int take_parcel() {
    std::unique_lock<std::mutex> lock(guard);
    arrived.wait(lock, [] { return !belt.empty(); });
    int parcel = belt.front();
    belt.pop_front();
    return parcel;
}

int main() {
    std::vector<std::thread> workers;
    for (int i = 0; i < 32; i++)
        workers.emplace_back([] { for (;;) done += take_parcel(); });
    for (int i = 0;; i++) {
        {
            std::lock_guard<std::mutex> lock(guard);
            belt.push_back(i);
        }
        arrived.notify_all();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}
