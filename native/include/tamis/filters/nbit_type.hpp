// The type that the parameters of HDF5 filter 5 describe: checked once, so that coding need not.
//
// values: their number, whether the chunk is stored as it is, items of the chunk, then a type. A type is its class and
//   atomic    nbytes, byte order, precision, offset (bits)
//   array     nbytes, type of an element
//   compound  nbytes, number of members, and per member its offset (bytes) and type
//   opaque    nbytes; no bit is left out
#pragma once

#include <cstdint>
#include <span>

#include "tamis/filters/status.hpp"

namespace tamis::filters::nbit {

using Values = std::span<const unsigned>;

enum Class : unsigned { atomic_class = 1, array_class, compound_class, opaque_class };

// Types in types; HDF5 itself sets no bound.
inline constexpr unsigned max_depth = 32;

struct Atomic {
    std::uint32_t nbytes;
    bool big;
    std::uint32_t precision, offset;
};

// Values at `at`, which were checked, without the class.
inline Atomic atomic_at(Values values, std::size_t at) {
    return {values[at], values[at + 1] == 1, values[at + 2], values[at + 3]};
}

// What a type takes; nbits ≤ 8 × nbytes, so no product of sizes below overflows.
struct Extent {
    std::uint64_t nbytes = 0, nbits = 0;
};

// Reads the type at `at`, its class, and moves on to the first value behind it.
class Survey {
public:
    explicit Survey(Values values) : values_(values) {}

    Status type(std::size_t& at, Extent& extent, unsigned depth = 0) const {
        if (depth == max_depth || !has(at, 2) || values_[at + 1] == 0) return fault(at);
        extent.nbytes = values_[at + 1];
        switch (values_[at]) {
            case atomic_class:
                return atomic(at, extent);
            case array_class:
                return array(at, extent, depth);
            case compound_class:
                return compound(at, extent, depth);
            case opaque_class:
                extent.nbits = 8 * extent.nbytes;
                at += 2;
                return {};
            default:
                return fault(at);
        }
    }

private:
    bool has(std::size_t at, std::size_t count) const { return at <= values_.size() && values_.size() - at >= count; }
    Status fault(std::size_t at) const { return {Code::bad_parameter, at < values_.size() ? at : values_.size()}; }

    Status atomic(std::size_t& at, Extent& extent) const {
        if (!has(at, 5) || values_[at + 2] > 1) return fault(at + 2);
        const std::uint64_t precision = values_[at + 3], offset = values_[at + 4];
        if (precision == 0 || precision > 8 * extent.nbytes) return fault(at + 3);
        if (offset > 8 * extent.nbytes - precision) return fault(at + 4);
        extent.nbits = precision;
        at += 5;
        return {};
    }
    Status array(std::size_t& at, Extent& extent, unsigned depth) const {
        const std::size_t size_at = at + 1;
        Extent element;
        at += 2;
        if (const Status status = type(at, element, depth + 1); !status) return status;
        if (extent.nbytes % element.nbytes != 0) return fault(size_at);
        extent.nbits = extent.nbytes / element.nbytes * element.nbits;
        return {};
    }
    Status compound(std::size_t& at, Extent& extent, unsigned depth) const {
        if (!has(at, 3)) return fault(at + 2);
        std::uint64_t members = values_[at + 2], used = 0;
        at += 3;
        for (; members > 0; --members) {
            if (!has(at, 2)) return fault(at);
            const std::size_t offset_at = at++;
            Extent member;
            if (const Status status = type(at, member, depth + 1); !status) return status;
            used += member.nbytes;
            if (used > extent.nbytes || values_[offset_at] > extent.nbytes - member.nbytes) return fault(offset_at);
            extent.nbits += member.nbits;
        }
        return {};
    }

    Values values_;
};

// More than any memory has, and its bits can still be counted.
inline constexpr std::uint64_t max_nbytes = std::uint64_t{1} << 56;

// What there is to code: `verbatim` chunks are stored as they are.
struct Chunk {
    bool verbatim = false;
    std::uint64_t items = 0;
    Extent item;

    std::uint64_t nbytes() const { return items * item.nbytes; }  // < 2^64, and ≤ max_nbytes once surveyed
    std::uint64_t nbits() const { return items * item.nbits; }
};

inline constexpr std::size_t type_at = 3;

// For an unfiltered chunk of `nbytes` bytes.
inline Status survey(Values values, std::size_t nbytes, Chunk& chunk) {
    if (values.size() < type_at) return {Code::bad_parameter, values.size()};
    if (values[0] != values.size()) return {Code::bad_parameter, 0};
    chunk.verbatim = values[1] != 0;
    chunk.items = values[2];
    if (chunk.verbatim) return {};  // nothing else is written for a type without parameters
    std::size_t at = type_at;
    if (at < values.size() && values[at] == opaque_class) return {Code::bad_parameter, at};
    if (const Status status = Survey(values).type(at, chunk.item); !status) return status;
    if (at != values.size()) return {Code::bad_parameter, at};
    if (chunk.nbytes() != nbytes || nbytes > max_nbytes)
        return {Code::wrong_nbytes, static_cast<std::size_t>(chunk.nbytes())};
    return {};
}

}  // namespace tamis::filters::nbit
