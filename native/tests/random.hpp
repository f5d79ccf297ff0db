// Chance that is the same on every machine, and damage done by it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace tamis::tests {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, doi:10.1145/2660193.2660195).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    // One of many independent sequences.
    Random(std::uint64_t seed, std::uint64_t number) : state_(Random(seed ^ Random(number).bits()).bits()) {}

    std::uint64_t bits() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return x ^ x >> 31;
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>(bits()); }
    unsigned word() { return static_cast<unsigned>(bits()); }

    // 0 … n - 1, n > 0.
    std::size_t below(std::size_t n) { return bits() % n; }
    int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::size_t>(high - low) + 1)); }
    bool one_in(std::size_t n) { return below(n) == 0; }

    template <class T>
    const T& pick(const std::vector<T>& from) {
        return from[below(from.size())];
    }

private:
    std::uint64_t state_;
};

// FNV-1a: one number for all bytes of a run, to be compared with those of other machines.
class Sum {
public:
    void add(const std::vector<std::uint8_t>& bytes) {
        for (const std::uint8_t byte : bytes) sum_ = (sum_ ^ byte) * 0x100000001b3;
    }
    unsigned long long get() const { return sum_; }

private:
    std::uint64_t sum_ = 0xcbf29ce484222325;
};

// Damage of the kinds that files suffer: flipped bits, lost ends, blank or moved stretches, garbage behind.
inline void mutate(Random& random, std::vector<std::uint8_t>& bytes) {
    for (std::size_t times = 1 + random.below(4); times > 0; --times) {
        if (bytes.empty()) bytes.push_back(random.byte());
        const std::size_t size = bytes.size(), at = random.below(size), length = 1 + random.below(size - at);
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const auto last = first + static_cast<std::ptrdiff_t>(length);
        switch (random.below(8)) {
            case 0:
            case 1:
                *first ^= static_cast<std::uint8_t>(1u << random.below(8));
                break;
            case 2:
                *first = random.byte();
                break;
            case 3:
                std::fill(first, last, random.one_in(2) ? 0x00 : 0xff);
                break;
            case 4:
                bytes.resize(at);
                break;
            case 5:
                bytes.erase(first, last);
                break;
            case 6:
                std::generate(first, last, [&] { return random.byte(); });
                break;
            default:
                for (std::size_t more = random.below(16); more > 0; --more) bytes.push_back(random.byte());
        }
    }
}

// What a fuzzer is told: [mutations = 200000] [seed = 1] [first mutation = 0].
struct FuzzArguments {
    std::uint64_t mutations, seed, first;
};

inline FuzzArguments fuzz_arguments(int count, char** arguments) {
    const auto number = [&](int index, std::uint64_t otherwise) {
        return count > index ? std::strtoull(arguments[index], nullptr, 10) : otherwise;
    };
    return {number(1, 200000), number(2, 1), number(3, 0)};
}

}  // namespace tamis::tests
