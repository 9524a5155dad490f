#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::shared_mutex table;
static long value;

__attribute__((noinline)) void update_rates() {
    std::unique_lock lock(table);
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    value++;
}
__attribute__((noinline)) long read_rate() {
    std::shared_lock lock(table);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return value;
}
int main() {
    std::vector<std::thread> threads;
    threads.emplace_back([] { for (;;) { update_rates(); std::this_thread::sleep_for(std::chrono::milliseconds(2)); } });
    for (int i = 0; i < 6; i++)
        threads.emplace_back([] { for (;;) { read_rate(); std::this_thread::sleep_for(std::chrono::microseconds(300)); } });
    for (auto &thread : threads) thread.join();
}
