#include <atomic>
#include <thread>

struct Counters {
    std::atomic<long> left{0}, right{0};
};
static Counters counters;

__attribute__((noinline)) void count_left() {
    for (int i = 0; i < 1000000; i++) counters.left.fetch_add(1);
}

__attribute__((noinline)) void count_right() {
    for (int i = 0; i < 1000000; i++) counters.right.fetch_add(1);
}

int main() {
    std::thread left([] { for (;;) count_left(); });
    std::thread right([] { for (;;) count_right(); });
    left.join();
    right.join();
}
