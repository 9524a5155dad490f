#include <thread>
#include <unistd.h>
#include <vector>

volatile unsigned long sink;

__attribute__((noinline)) void render(unsigned long seed) {
    for (long i = 0; i < 30000000; i++) seed = seed * 2862933555777941757UL + 3037000493UL;
    sink = seed;
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([i] {
            for (;;) {
                render(i);
                usleep(5000);
            }
        });
    for (auto& one : threads) one.join();
}
