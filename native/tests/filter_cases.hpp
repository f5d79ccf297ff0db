// Chunks and parameters for the tests of the filters.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "check.hpp"
#include "random.hpp"
#include "tamis/filters/bitshuffle.hpp"
#include "tamis/filters/fletcher32.hpp"
#include "tamis/filters/nbit.hpp"
#include "tamis/filters/scaleoffset.hpp"

namespace tamis::tests {

using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<unsigned>;

// A block of its own for exactly these bytes, so that the sanitizer sees the first one behind.
class Memory {
public:
    explicit Memory(std::size_t size) : memory_(new std::uint8_t[size]), size_(size) {
        std::fill_n(memory_.get(), size, std::uint8_t{0xa5});
    }
    explicit Memory(const Bytes& bytes) : Memory(bytes.size()) { std::copy(bytes.begin(), bytes.end(), memory_.get()); }

    std::uint8_t* data() const { return memory_.get(); }
    std::span<std::uint8_t> span() const { return {memory_.get(), size_}; }
    Bytes bytes() const { return {memory_.get(), memory_.get() + size_}; }

private:
    std::unique_ptr<std::uint8_t[]> memory_;
    std::size_t size_;
};

inline Bytes random_bytes(Random& random, std::size_t size) {
    Bytes bytes(size);
    for (auto& byte : bytes) byte = random.byte();
    return bytes;
}

inline unsigned below(Random& random, std::size_t n) { return static_cast<unsigned>(random.below(n)); }

// Append a type to the values of nbit; returns its bytes.
inline unsigned add_nbit_type(Random& random, Words& values, unsigned depth) {
    const unsigned nbytes = 1 + below(random, random.one_in(4) ? 17 : 8), nbits = 8 * nbytes;
    switch (depth > 3 ? 0 : below(random, depth == 0 ? 5 : 6)) {
        case 3: {
            const std::size_t at = values.size();
            values.insert(values.end(), {2, 0});
            return values[at + 1] = (1 + below(random, 4)) * add_nbit_type(random, values, depth + 1);
        }
        case 4: {
            const std::size_t at = values.size();
            const unsigned members = 1 + below(random, 4);
            unsigned end = below(random, 3);
            values.insert(values.end(), {3, 0, members});
            for (unsigned i = 0; i < members; ++i) {
                values.push_back(end);
                end += add_nbit_type(random, values, depth + 1) + below(random, 3);
            }
            return values[at + 1] = end;
        }
        case 5:
            values.insert(values.end(), {4, nbytes});
            return nbytes;
        default: {
            const unsigned precision = 1 + below(random, nbits), offset = below(random, nbits - precision + 1);
            values.insert(values.end(), {1, nbytes, below(random, 2), precision, offset});
            return nbytes;
        }
    }
}

inline Words nbit_values(Random& random) {
    Words values{0, 0, below(random, 40)};
    add_nbit_type(random, values, 0);
    values[0] = static_cast<unsigned>(values.size());
    return values;
}

inline Words scaleoffset_values(Random& random) {
    Words values(filters::scaleoffset::value_count);
    const bool is_float = random.one_in(2);
    const unsigned nbytes = is_float ? 4u << random.below(2) : 1u << random.below(4);
    const unsigned factor = is_float ? below(random, 9) - 3 : random.one_in(2) ? 0 : below(random, 8 * nbytes + 1);
    const unsigned first[] = {is_float ? 0u : 2u,
                              factor,
                              below(random, 60),
                              is_float ? 1u : 0u,
                              nbytes,
                              below(random, 2),
                              below(random, 2),
                              below(random, 2),
                              random.one_in(2) ? random.word() : below(random, 9),
                              random.one_in(2) ? random.word() : 0};
    std::copy(std::begin(first), std::end(first), values.begin());
    return values;
}

// Items that a filter can make smaller: near one another, or anything.
inline Bytes items_for(Random& random, const Words& values) {
    const std::size_t nbytes = values[4], bits = random.below(8 * nbytes + 1);
    Bytes bytes(values[2] * nbytes);
    const std::uint64_t base = random.bits();
    for (std::size_t at = 0; at < bytes.size(); at += nbytes) {
        const std::uint64_t item = base + (random.bits() & filters::low_bits(static_cast<unsigned>(bits)));
        for (std::size_t i = 0; i < nbytes; ++i)
            bytes[at + (values[6] == 1 ? nbytes - 1 - i : i)] = static_cast<std::uint8_t>(item >> 8 * i);
    }
    return bytes;
}

}  // namespace tamis::tests
