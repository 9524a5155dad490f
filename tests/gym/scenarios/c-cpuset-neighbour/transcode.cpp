#include <cmath>
#include <vector>

class Encoder {
    std::vector<double> block = std::vector<double>(4096, 0.5);

public:
    __attribute__((noinline)) void transform() {
        for (auto &value : block) value = std::sin(value) + std::cos(value * 1.7);
    }
};

int main() {
    Encoder encoder;
    for (;;) encoder.transform();
}
