#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>
#include <vector>

std::atomic<int> turn{0};

__attribute__((noinline)) void await_turn(int mine) {
    while (turn.load() != mine) sched_yield();
}

void work(int mine, int all) {
    for (;;) {
        await_turn(mine);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        turn.store((mine + 1) % all);
    }
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(work, i, 3);
    for (auto& one : threads) one.join();
}
