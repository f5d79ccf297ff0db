// What tamis needs of a compiler: the build asks before it begins, for g++ before 12 and clang++ before 16 lack it.
#include <charconv>
#include <span>
#include <utility>

using Lanes [[gnu::vector_size(8)]] = unsigned char;

int main() {
    const Lanes lanes = {1, 2, 3, 4, 5, 6, 7, 8};
    const Lanes swapped = __builtin_shufflevector(lanes, lanes, 7, 6, 5, 4, 3, 2, 1, 0);
    const auto [low, high] = std::pair<int, int>(swapped[0], swapped[7]);
    const auto sum = [&] { return low + high; };  // clang++ 15 captures no structured binding
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, 0.5).ptr;
    return static_cast<int>(std::span<const char>(text, end).size()) - sum();
}
