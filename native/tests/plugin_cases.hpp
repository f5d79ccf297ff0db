// The plugin's filter as HDF5 gets it, and chunks for it.
#pragma once

#include "cases.hpp"
#include "fake_hdf5.hpp"
#include "tamis/hdf5/cd_values.hpp"
#include "tamis/system/memory.hpp"

extern "C" {
int H5PLget_plugin_type();
const void* H5PLget_plugin_info();
}

namespace tamis::tests {

inline const hdf5::FilterClass& filter() { return *static_cast<const hdf5::FilterClass*>(H5PLget_plugin_info()); }

// A buffer as HDF5 hands it to a filter: from malloc, at times longer than what it holds.
class Chunk {
public:
    Chunk(std::span<const std::uint8_t> bytes, std::size_t slack) : held_(bytes.size()), size_(held_ + slack) {
        memory_ = std::malloc(size_);
        if (!bytes.empty()) std::memcpy(memory_, bytes.data(), bytes.size());
    }
    ~Chunk() { std::free(memory_); }
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;

    // What HDF5 relies on, whatever the words and bytes are.
    bool apply(unsigned flags, const std::vector<unsigned>& words) {
        const Exact values(words.size() * sizeof(unsigned));
        if (!words.empty()) std::memcpy(values.data(), words.data(), values.size());
        const auto* numbers = words.empty() ? nullptr : reinterpret_cast<const unsigned*>(values.data());
        const std::vector<std::uint8_t> before = bytes();
        void* const memory = memory_;
        const std::size_t size = size_;
        fake.messages = 0;
        const std::size_t result = filter().filter(flags, words.size(), numbers, held_, &size_, &memory_);
        if (result == 0) {
            require(memory_ == memory && size_ == size && bytes() == before, "a failure leaves the chunk as it was");
            require(fake.messages == 1, "a failure has one message");
            return false;
        }
        require(fake.messages == 0, "a success has no message");
        require(memory_ != nullptr && result <= size_, "the result lies in its buffer");
        require(size_ <= system::usable_nbytes(memory_), "the buffer is as long as it says");
        held_ = result;
        return true;
    }

    std::vector<std::uint8_t> bytes() const {
        const auto* first = static_cast<const std::uint8_t*>(memory_);
        return {first, first + held_};
    }

private:
    std::size_t held_, size_;
    void* memory_ = nullptr;
};

struct Case {
    Type type;
    Layout layout;
    Params params;
    std::vector<unsigned> words;  // stored
};

inline Case random_case(Random& random) {
    Case c;
    c.type = random_type(random);
    c.layout = random_layout(random);
    c.layout = Layout::contiguous(c.layout.rank, c.layout.extent);
    c.params = random_params(random, c.type, c.layout.rank);
    unsigned words[hdf5::max_stored];
    std::size_t count = 0;
    require(static_cast<bool>(hdf5::stored_of_params(c.params, c.type, c.layout, words, count)),
            "sound parameters are stored");
    c.words.assign(words, words + count);
    return c;
}

inline bool promises_accuracy(const Case& c) {
    return c.params.minexp > zfp::min_exp && c.params.maxprec >= 8 * zfp::item_nbytes(c.type) &&
           c.params.maxbits >= zfp::block_unlimited_nbits(c.type, c.layout.rank, c.params);
}

// What a chunk in accuracy mode promises, told one by one and in the widest type.
inline void require_promise(const Case& c, std::optional<std::uint64_t> fill, std::span<const std::uint8_t> before,
                            std::span<const std::uint8_t> after) {
    const auto check = [&]<class Scalar>(Scalar) {
        const auto at = [](std::span<const std::uint8_t> bytes, std::size_t i) {
            Scalar value;
            std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
            return value;
        };
        Scalar mark{};
        if (fill) std::memcpy(&mark, &*fill, sizeof mark);
        const long double tolerance = std::ldexp(1.0L, c.params.minexp);
        for (std::size_t i = 0; i < before.size() / sizeof(Scalar); ++i) {
            const Scalar was = at(before, i), now = at(after, i);
            const long double error = std::abs(static_cast<long double>(was) - static_cast<long double>(now));
            // Distances of doubles are rounded to doubles.
            require(error <= tolerance * (1 + 0x1p-52L), "a chunk in accuracy mode keeps its tolerance");
            require(!fill || (was == mark) == (now == mark), "a missing value is missing, and no other");
        }
    };
    if (c.type == Type::int32) check(std::int32_t{});
    if (c.type == Type::int64) check(std::int64_t{});
    if (c.type == Type::float32) check(float{});
    if (c.type == Type::float64) check(double{});
}

inline std::vector<std::uint8_t> random_chunk(Random& random, const Case& c) {
    Array array(c.type, c.layout);
    fill(random, array, random_values(random));
    return {array.origin(), array.origin() + value_count(c.layout) * array.item()};
}

}  // namespace tamis::tests
