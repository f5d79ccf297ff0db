// The four numbers that drive the codec, how each mode sets them, and the bits that a block can take.
//
// Numbers and rules are libzfp 1.0's (zfp.h, zfp_stream_set_*). Reversible is decided by minexp alone.
#pragma once

#include <algorithm>
#include <cmath>

#include "status.hpp"
#include "types.hpp"

namespace tamis::zfp {

// Bits that precede the bit planes of a block.
constexpr unsigned block_header_nbits(Type type, bool reversible) {
    const unsigned ebits = type == Type::float32 ? 8 : type == Type::float64 ? 11 : 0;
    const unsigned pbits = item_nbytes(type) == 4 ? 5 : 6;
    if (reversible) return is_float(type) ? 2 + ebits + pbits : pbits;
    return is_float(type) ? 1 + ebits : 0;
}

// Bits of the longest block before minbits and maxbits act: each plane sends at most one bit per value, and each
// value that becomes significant costs one group bit more, but for the last, which is implied.
constexpr unsigned block_unlimited_nbits(Type type, unsigned rank, unsigned maxprec, bool reversible) {
    const unsigned size = block_size(rank);
    const unsigned planes = std::min<unsigned>(maxprec, 8 * static_cast<unsigned>(item_nbytes(type)));
    return block_header_nbits(type, reversible) + size - 1 + size * planes;
}

inline constexpr unsigned min_bits = 1, max_prec = 64;
inline constexpr unsigned max_bits = block_unlimited_nbits(Type::float64, max_rank, max_prec, true);
static_assert(max_bits == 16658, "what libzfp calls ZFP_MAX_BITS, and a file's parameters hold");
inline constexpr int min_exp = -1074;  // of the smallest float64 above 0

// Widths of the long mode's fields of the header: what lies beyond cannot be stored.
inline constexpr unsigned header_bits_nbits = 15, header_prec_nbits = 7, header_exp_nbits = 15;
inline constexpr unsigned header_max_bits = 1u << header_bits_nbits;
inline constexpr int header_min_exp = -16495, header_max_exp = header_min_exp + (1 << header_exp_nbits) - 1;
static_assert(max_bits <= header_max_bits && max_prec <= 1u << header_prec_nbits);
static_assert(header_min_exp < min_exp && header_max_exp == 16272);

struct Params {
    unsigned minbits = min_bits;  // bits per block, at least
    unsigned maxbits = max_bits;  // bits per block, at most
    unsigned maxprec = max_prec;  // bit planes per block, at most
    int minexp = min_exp;         // exponent of the lowest bit plane that is kept

    constexpr bool operator==(const Params&) const = default;
    constexpr bool reversible() const { return minexp < min_exp; }
    // Reversible, and neither bits nor planes are cut off.
    constexpr bool lossless() const { return reversible() && maxbits >= max_bits && maxprec >= max_prec; }
};

constexpr unsigned block_unlimited_nbits(Type type, unsigned rank, const Params& params) {
    return block_unlimited_nbits(type, rank, params.maxprec, params.reversible());
}

constexpr unsigned block_max_nbits(Type type, unsigned rank, const Params& params) {
    return std::max(params.minbits, std::min(params.maxbits, block_unlimited_nbits(type, rank, params)));
}

// Rates beyond these are wrong for every type and rank: they round to no bit in the largest block, or the header cannot
// hold as many bits.
inline constexpr double least_rate = 0.5 / block_size(max_rank);
inline constexpr double most_rate = header_max_bits / double{block_size(1)};

// A block of floats takes at least the bits of its own header, as in libzfp.
inline Status set_rate(Params& params, double rate, Type type, unsigned rank) {
    const double nbits = std::floor(block_size(rank) * rate + 0.5);
    if (!(rate > 0) || !(nbits <= header_max_bits)) return {Code::bad_rate};
    const unsigned bits = std::max(static_cast<unsigned>(nbits), block_header_nbits(type, false));
    if (bits == 0) return {Code::bad_rate};
    params = {bits, bits, max_prec, min_exp};
    return {};
}

inline Status set_precision(Params& params, unsigned precision) {
    if (precision < 1 || precision > max_prec) return {Code::bad_precision};
    params = {min_bits, max_bits, precision, min_exp};
    return {};
}

// tolerance = 0 means all planes, as in libzfp; any other is rounded down to a power of two.
inline Status set_accuracy(Params& params, double tolerance) {
    if (!(tolerance >= 0) || std::isinf(tolerance)) return {Code::bad_accuracy};
    params = {};
    if (tolerance > 0) {
        int exponent = 0;
        std::frexp(tolerance, &exponent);
        params.minexp = exponent - 1;
    }
    return {};
}

inline Status set_expert(Params& params, unsigned minbits, unsigned maxbits, unsigned maxprec, int minexp) {
    if (minbits > maxbits || minbits > header_max_bits || maxbits < 1) return {Code::bad_expert};
    if (maxprec < 1 || maxprec > max_prec) return {Code::bad_expert};
    params = {minbits, maxbits, maxprec, minexp};
    return {};
}

inline Params reversible_params() { return {min_bits, max_bits, max_prec, min_exp - 1}; }

// What must hold before a block is coded: the bits of its header fit, so that no count of bits left goes below zero.
inline Status check(const Params& params, Type type) {
    if (params.minbits > params.maxbits || params.maxprec < 1 || params.maxprec > max_prec) return {Code::bad_expert};
    const unsigned header = std::max(1u, block_header_nbits(type, params.reversible()));
    if (params.maxbits < header) return {Code::maxbits_small, header};
    return {};
}

}  // namespace tamis::zfp
