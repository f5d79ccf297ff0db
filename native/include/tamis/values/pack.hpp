// Floats as integers in equal steps, CF's packing, with the error of each value in one pass: what readers unpack, in
// the type of the source and in doubles, is compared with what was there.
//
// Values are taken some at a time, few enough for the processor's nearest cache, without branches, by a kernel of
// pack_block.hpp. Where a value is at a limit, is a tie that division put on the wrong side, or cannot keep the bound,
// they are then looked at one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "tamis/values/difference.hpp"
#include "tamis/values/packing.hpp"

namespace tamis::values {

namespace detail {

// To the nearest whole number, a tie to the even one; exact up to 2^51, beyond which no code is.
inline double nearest(double value) {
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
    return (value + shift) - shift;
}

// The larger of the errors of a value unpacked in its own type and in doubles.
template <class Scalar>
double error_of_code(const Packing<Scalar>& packing, Scalar value, std::int32_t code) {
    const double exact = static_cast<double>(value);
    const double wide =
        static_cast<double>(code) * static_cast<double>(packing.step) + static_cast<double>(packing.offset);
    const Scalar own = static_cast<Scalar>(code) * packing.step + packing.offset;
    const double error = std::abs(exact - wide), own_error = std::abs(exact - static_cast<double>(own));
    return own_error > error ? own_error : error;
}

template <class Scalar>
bool is_code_of(const Packing<Scalar>& packing, Scalar value, std::int32_t code) {
    return code >= packing.low && code <= packing.high && error_of_code(packing, value, code) <= packing.bound &&
           (value < packing.valid_low) == (code < packing.valid_low_code) &&
           (value > packing.valid_high) == (code > packing.valid_high_code) &&
           !(packing.zeros && value != 0 && static_cast<double>(code) == packing.origin);
}

// Whether the values between two, widened by a step, have a mark or a limit, or 0 where it has a meaning.
template <class Scalar>
bool has_special(const Packing<Scalar>& packing, double low, double high) {
    const auto step = static_cast<double>(packing.step);
    const auto inside = [&](double value) { return value >= low - step && value <= high + step; };
    return (packing.zeros && inside(0)) || inside(static_cast<double>(packing.valid_low)) ||
           inside(static_cast<double>(packing.valid_high)) ||
           std::any_of(packing.missing.begin(), packing.missing.end(),
                       [&](const MissingCode<Scalar>& entry) { return inside(static_cast<double>(entry.mark)); });
}

// Whether values must be compared with marks and limits, because some are among those that have codes.
template <class Scalar>
bool compares(const Packing<Scalar>& packing) {
    const auto value_of = [&](std::int32_t code) {
        return (static_cast<double>(code) - packing.origin) * static_cast<double>(packing.step);
    };
    return has_special(packing, value_of(packing.low), value_of(packing.high));
}

// The same for a block, without its NaN.
template <class Scalar>
bool is_near(const Packing<Scalar>& packing, std::span<const Scalar> block) {
    std::array<Scalar, 8> low, high;
    low.fill(std::numeric_limits<Scalar>::infinity());
    high.fill(-std::numeric_limits<Scalar>::infinity());
    const auto take = [&](std::size_t lane, Scalar value) {
        low[lane] = value < low[lane] ? value : low[lane];
        high[lane] = value > high[lane] ? value : high[lane];
    };
    std::size_t at = 0;
    for (; at + 8 <= block.size(); at += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) take(lane, block[at + lane]);
    for (; at < block.size(); ++at) take(0, block[at]);
    return has_special(packing, static_cast<double>(*std::min_element(low.begin(), low.end())),
                       static_cast<double>(*std::max_element(high.begin(), high.end())));
}

// Codes of a block, one by one; the number of values before the first one without a code.
template <class Scalar, class Code>
[[gnu::noinline]] std::size_t pack_slowly(const Packing<Scalar>& packing, std::span<const Scalar> in, Code* out,
                                          Packed& packed) {
    for (std::size_t i = 0; i < in.size(); ++i) {
        const Scalar value = in[i];
        if (value != value) {
            if (packing.nan_code > packing.high) return i;
            out[i] = static_cast<Code>(packing.nan_code);
            ++packed.missing;
            continue;
        }
        const auto mark = std::find_if(packing.missing.begin(), packing.missing.end(),
                                       [&](const MissingCode<Scalar>& entry) { return entry.mark == value; });
        if (mark != packing.missing.end()) {
            out[i] = static_cast<Code>(mark->code);
            ++packed.missing;
            continue;
        }
        const double nearest_code =
            nearest(static_cast<double>(value) / static_cast<double>(packing.step)) + packing.origin;
        const auto code = static_cast<std::int32_t>(
            std::clamp(nearest_code, static_cast<double>(packing.low), static_cast<double>(packing.high)));
        // The next codes: of a tie that division put on the wrong side, or on the other side of a limit or of 0.
        const std::array<std::int32_t, 3> near{code, code - (code > packing.low), code + (code < packing.high)};
        const auto found = std::find_if(near.begin(), near.end(),
                                        [&](std::int32_t candidate) { return is_code_of(packing, value, candidate); });
        if (found == near.end()) return i;
        out[i] = static_cast<Code>(*found);
        packed.error = std::max(packed.error, error_of_code(packing, value, *found));
    }
    return in.size();
}

}  // namespace detail

// Store values as codes. Values after the first one without a code have none.
template <class Scalar, class Code>
Packed pack(const PackBlocks<Scalar, Code>& blocks, const Packing<Scalar>& packing, std::span<const Scalar> in,
            Code* out) {
    Packed packed;
    const bool compares = detail::compares(packing);
    bool has_missing = false;  // the last block, and so probably the next one
    detail::each_block(in, [&](std::size_t at, std::size_t count) {
        if (packed.refused >= 0) return;
        const auto block = in.subspan(at, count);
        const bool near = compares && detail::is_near(packing, block);
        if (!near && !has_missing && blocks.plain(packing, block, out + at, packed)) return;
        const std::size_t missing = packed.missing;
        if (!near && !compares && blocks.with_missing(packing, block, out + at, packed)) {
            has_missing = packed.missing != missing;
            return;
        }
        const std::size_t done = detail::pack_slowly(packing, block, out + at, packed);
        if (done < count) packed.refused = static_cast<std::ptrdiff_t>(at + done);
    });
    return packed;
}

}  // namespace tamis::values
