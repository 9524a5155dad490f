#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

struct Rows {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<int> rows;

    __attribute__((noinline)) void push(int row) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return rows.size() < 16; });
        rows.push_back(row);
        changed.notify_all();
    }
    __attribute__((noinline)) int take() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return !rows.empty(); });
        int row = rows.front();
        rows.pop_front();
        changed.notify_all();
        return row;
    }
};

static Rows rows;

__attribute__((noinline)) void write_slowly(int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
}

int main() {
    for (int i = 0; i < 3; i++)
        std::thread([] { for (int n = 0;; n++) rows.push(n); }).detach();
    for (;;) write_slowly(rows.take());
}
