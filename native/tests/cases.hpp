// What the codec is fed: arrays of any layout in memory of exactly their size, and parameters of every mode.
#pragma once

#include <cstring>
#include <memory>
#include <numbers>

#include "check.hpp"
#include "random.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::tests {

using zfp::Code;
using zfp::Layout;
using zfp::Params;
using zfp::Status;
using zfp::Type;

// The one that TAMIS_KERNEL names; a test of a kernel that this machine cannot run fails.
inline const zfp::Kernel& kernel() {
    require(zfp::chosen_kernel().as_asked, "TAMIS_KERNEL names a kernel of this machine");
    return *zfp::chosen_kernel().kernel;
}

inline constexpr Type all_types[] = {Type::int32, Type::int64, Type::float32, Type::float64};

// Bytes on the heap, not one more: AddressSanitizer sees any access beside them.
class Exact {
public:
    explicit Exact(std::size_t size) : memory_(new std::uint8_t[size]), size_(size) {}
    explicit Exact(std::span<const std::uint8_t> bytes) : Exact(bytes.size()) {
        std::copy(bytes.begin(), bytes.end(), data());
    }

    std::uint8_t* data() const { return memory_.get(); }
    std::size_t size() const { return size_; }
    std::span<const std::uint8_t> span() const { return {data(), size_}; }

private:
    std::unique_ptr<std::uint8_t[]> memory_;
    std::size_t size_;
};

inline std::size_t value_count(const Layout& layout) {
    std::size_t count = 1;
    for (unsigned axis = 0; axis < layout.rank; ++axis) count *= layout.extent[axis];
    return count;
}

// Offsets of all values in C order, in elements.
template <class Visit>
void for_each_offset(const Layout& layout, Visit visit) {
    std::array<std::size_t, zfp::max_rank> at{};
    for (std::size_t left = value_count(layout); left > 0; --left) {
        std::ptrdiff_t offset = 0;
        for (unsigned axis = 0; axis < layout.rank; ++axis)
            offset += static_cast<std::ptrdiff_t>(at[axis]) * layout.stride[axis];
        visit(offset);
        for (unsigned axis = 0; axis < layout.rank && ++at[axis] == layout.extent[axis]; ++axis) at[axis] = 0;
    }
}

// Values are handled as bit patterns, in 64 bits whatever the type.
class Array {
public:
    Array(Type type, const Layout& layout) : type_(type), layout_(layout), memory_(0) {
        std::ptrdiff_t lowest = 0, highest = 0;
        for (unsigned axis = 0; axis < layout.rank; ++axis) {
            const std::ptrdiff_t reach = static_cast<std::ptrdiff_t>(layout.extent[axis] - 1) * layout.stride[axis];
            (reach < 0 ? lowest : highest) += reach;
        }
        origin_ = -lowest;
        memory_ = Exact(static_cast<std::size_t>(highest - lowest + 1) * item());
        std::memset(memory_.data(), untouched, memory_.size());
    }

    Type type() const { return type_; }
    const Layout& layout() const { return layout_; }
    std::size_t item() const { return zfp::item_nbytes(type_); }
    std::uint8_t* origin() const { return at(0); }

    void set(std::ptrdiff_t offset, std::uint64_t bits) {
        const auto low = static_cast<std::uint32_t>(bits);
        std::memcpy(at(offset), item() == 4 ? static_cast<const void*>(&low) : &bits, item());
    }

    std::uint64_t get(std::ptrdiff_t offset) const {
        std::uint32_t low = 0;
        std::uint64_t bits = 0;
        std::memcpy(item() == 4 ? static_cast<void*>(&low) : &bits, at(offset), item());
        return low | bits;
    }

    std::vector<std::uint64_t> values() const {
        std::vector<std::uint64_t> values;
        for_each_offset(layout_, [&](std::ptrdiff_t offset) { values.push_back(get(offset)); });
        return values;
    }

    // Whether what lies between the values is as it was made.
    bool gaps_untouched() const {
        std::vector<bool> inside(memory_.size() / item());
        for_each_offset(layout_,
                        [&](std::ptrdiff_t offset) { inside[static_cast<std::size_t>(origin_ + offset)] = true; });
        for (std::size_t i = 0; i < memory_.size(); ++i)
            if (!inside[i / item()] && memory_.data()[i] != untouched) return false;
        return true;
    }

private:
    static constexpr std::uint8_t untouched = 0xa5;

    std::uint8_t* at(std::ptrdiff_t offset) const {
        return memory_.data() + (origin_ + offset) * static_cast<std::ptrdiff_t>(item());
    }

    Type type_;
    Layout layout_;
    Exact memory_;
    std::ptrdiff_t origin_ = 0;
};

// Axes in any order in memory, with gaps, forwards and backwards.
inline Layout strided(Random& random, unsigned rank, const std::array<std::size_t, zfp::max_rank>& extent) {
    Layout layout{rank, extent, {0, 0, 0, 0}};
    std::array<unsigned, zfp::max_rank> order{0, 1, 2, 3};
    for (unsigned axis = rank; axis > 1; --axis) std::swap(order[axis - 1], order[random.below(axis)]);
    std::ptrdiff_t stride = 1;
    for (unsigned i = 0; i < rank; ++i) {
        stride += random.one_in(3) ? random.between(1, 2) : 0;
        layout.stride[order[i]] = random.one_in(3) ? -stride : stride;
        stride *= static_cast<std::ptrdiff_t>(extent[order[i]]);
    }
    return layout;
}

inline std::array<std::size_t, zfp::max_rank> random_extent(Random& random, unsigned rank) {
    constexpr std::size_t most[] = {70, 17, 9, 6};
    std::array<std::size_t, zfp::max_rank> extent{1, 1, 1, 1};
    for (unsigned axis = 0; axis < rank; ++axis) extent[axis] = 1 + random.below(most[rank - 1]);
    return extent;
}

inline Layout random_layout(Random& random) {
    const unsigned rank = 1 + static_cast<unsigned>(random.below(4));
    const auto extent = random_extent(random, rank);
    return random.one_in(2) ? Layout::contiguous(rank, extent) : strided(random, rank, extent);
}

inline Type random_type(Random& random) { return all_types[random.below(4)]; }

enum class Values { smooth, any_bits, small, zero, tiny, border, mixed };

inline Values random_values(Random& random) { return static_cast<Values>(random.below(7)); }

inline std::uint64_t bits_of(Type type, double value) {
    if (type == Type::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (type == Type::float64) return std::bit_cast<std::uint64_t>(value);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

// The ends of what a type or a mode can take: infinities, NaN of both kinds, both zeros, subnormals; integer borders.
inline std::uint64_t border_bits(Random& random, Type type) {
    const bool wide = zfp::item_nbytes(type) == 8;
    const unsigned width = wide ? 64 : 32;
    const std::uint64_t sign = random.one_in(2) ? std::uint64_t{1} << (width - 1) : 0;
    if (zfp::is_float(type)) {
        const std::uint64_t infinity = wide ? 0x7ff0000000000000 : 0x7f800000, one_ulp = 1;
        const std::uint64_t quiet = infinity | infinity >> 1;
        const std::vector<std::uint64_t> bits{infinity, infinity | one_ulp, quiet,        0,
                                              one_ulp,  infinity - one_ulp, infinity >> 1};
        return sign | random.pick(bits);
    }
    const std::uint64_t limit = std::uint64_t{1} << (width - 2);
    const std::vector<std::uint64_t> bits{limit, limit - 1, ~limit + 1, ~limit + 2, 2 * limit, 2 * limit - 1};
    return random.pick(bits);
}

inline std::uint64_t value_bits(Random& random, Type type, Values kind, std::size_t index) {
    switch (kind) {
        case Values::smooth:
            return bits_of(type, 1000.0 / (1.0 + 0.25 * static_cast<double>(index)) + random.between(0, 3));
        case Values::any_bits:
            return random.bits();
        case Values::small:
            return bits_of(type, random.between(-100, 100));
        case Values::zero:
            return 0;
        case Values::tiny:  // subnormal floats and their neighbours, small integers
            return random.bits() >> (zfp::item_nbytes(type) == 8 ? 10 : 40);
        case Values::border:
            return border_bits(random, type);
        default:
            return random.one_in(40) ? border_bits(random, type)
                                     : bits_of(type, std::numbers::pi * random.between(-99, 99));
    }
}

inline void fill(Random& random, Array& array, Values kind) {
    std::size_t index = 0;
    for_each_offset(array.layout(),
                    [&](std::ptrdiff_t offset) { array.set(offset, value_bits(random, array.type(), kind, index++)); });
}

inline unsigned edge_word(Random& random) {
    const std::vector<unsigned> edges{0, 1, 64, 32768, 32769, 0x7fffffff, 0x80000000, 0xffffffff};
    return random.pick(edges);
}

inline Status random_expert(Random& random, Params& params, unsigned rank) {
    const unsigned size = zfp::block_size(rank);
    const unsigned most = random.one_in(12) ? edge_word(random) : size * (random.word() % 70) + random.word() % 60;
    const unsigned least = random.one_in(2) ? 0 : random.word() % std::min(most | 1, 33000u);
    const int minexp = random.one_in(3)   ? random.between(-17000, 17000)
                       : random.one_in(9) ? static_cast<int>(edge_word(random))
                                          : random.between(-1080, 20);
    return zfp::set_expert(params, least, most, 1 + random.word() % 64, minexp);
}

// Of every mode, as the callers make them, and valid for the type.
inline Params random_params(Random& random, Type type, unsigned rank) {
    for (;;) {
        Params params;
        Status status;
        switch (random.below(6)) {
            case 0:
                status = zfp::set_rate(params, random.between(1, 700) / 10.0, type, rank);
                break;
            case 1:
                status = zfp::set_precision(params, static_cast<unsigned>(random.below(70)));
                break;
            case 2:
                status = zfp::set_accuracy(params, std::ldexp(1.5, random.between(-60, random.one_in(3) ? 1000 : 9)));
                break;
            case 3:
                params = zfp::reversible_params();
                break;
            default:
                status = random_expert(random, params, rank);
        }
        if (status && zfp::check(params, type)) return params;
    }
}

// Whether the parameters promise every bit back.
inline bool keeps_all(const Params& params, Type type, unsigned rank) {
    return params.reversible() && params.maxprec >= 8 * zfp::item_nbytes(type) &&
           params.maxbits >= zfp::block_unlimited_nbits(type, rank, params);
}

}  // namespace tamis::tests
