// HDF5's Fletcher checksum: of big-endian 16-bit words, both sums modulo 65535, zero only where all bytes are zero.
#pragma once

#include <algorithm>
#include <span>

#include "tamis/zfp/bytes.hpp"

namespace tamis::filters {

namespace detail {

using Sums [[gnu::vector_size(16)]] = std::uint32_t;

// Modulo 65535; what is not zero stays so.
constexpr std::uint64_t fold(std::uint64_t sum) {
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

// Groups of eight words. `first` holds the words 0, 2, 4, 6 of a group, or their sums, `second` the others.
struct WordSums {
    Sums first{}, second{};

    // Σ words, and Σ j × word j.
    std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (unsigned i = 0; i < 4; ++i) sum += std::uint64_t{first[i]} + second[i];
        return sum;
    }
    std::uint64_t moment() const {
        std::uint64_t sum = 0;
        for (unsigned i = 0; i < 4; ++i) sum += std::uint64_t{2 * i} * first[i] + std::uint64_t{2 * i + 1} * second[i];
        return sum;
    }
};

// A group that is followed by g others is summed g + 1 times.
inline constexpr std::size_t max_groups = 361;
static_assert(std::uint64_t{0xffff} * max_groups * (max_groups + 1) / 2 <= 0xffffffff);

struct Fletcher {
    std::uint64_t low = 0, high = 0;

    void add_groups(const std::uint8_t* in, std::size_t groups) {
        WordSums sums, sums_of_sums;
        for (std::size_t g = 0; g < groups; ++g) {
            Sums words;
            std::memcpy(&words, in + 16 * g, sizeof words);
            constexpr bool little = std::endian::native == std::endian::little;
            sums.first += little ? words & 0xffff : words >> 16;
            sums.second += little ? words >> 16 : words & 0xffff;
            sums_of_sums.first += sums.first;
            sums_of_sums.second += sums.second;
        }
        // Word j of a group with g groups behind it counts 8 (g + 1) - j times.
        high = fold(high + 8 * groups * low + 8 * sums_of_sums.total() - sums.moment());
        low = fold(low + sums.total());
    }
    void add_word(std::uint64_t word) {
        low = fold(low + word);
        high = fold(high + low);
    }
};

}  // namespace detail

inline std::uint32_t fletcher32(std::span<const std::uint8_t> in) {
    // Words in the machine's order: 256 × word exchanges its bytes modulo 65535, so the bytes of the sums are
    // exchanged.
    constexpr bool little = std::endian::native == std::endian::little;
    detail::Fletcher sums;
    std::size_t at = 0;
    while (in.size() - at >= 16) {
        const std::size_t groups = std::min(detail::max_groups, (in.size() - at) / 16);
        sums.add_groups(in.data() + at, groups);
        at += 16 * groups;
    }
    for (; at < in.size(); at += 2) {
        const std::uint8_t pair[2] = {in[at], at + 1 < in.size() ? in[at + 1] : std::uint8_t{0}};
        std::uint16_t word;
        std::memcpy(&word, pair, sizeof word);
        sums.add_word(word);
    }
    const auto low = static_cast<std::uint16_t>(sums.low), high = static_cast<std::uint16_t>(sums.high);
    return little ? std::uint32_t{zfp::byteswap(high)} << 16 | zfp::byteswap(low) : std::uint32_t{high} << 16 | low;
}

}  // namespace tamis::filters
