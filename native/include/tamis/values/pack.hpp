// Floats as integers in equal steps, CF's packing, with the error of each value in one pass: what readers unpack, in
// the type of the source and in doubles, is compared with what was there.
//
// Values are taken some at a time, few enough for the processor's nearest cache, without branches. Where a value is at
// a limit, is a tie that division put on the wrong side, or cannot keep the bound, they are then looked at one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "tamis/values/difference.hpp"

namespace tamis::values {

// A value that marks a missing one, and its code.
template <class Scalar>
struct MissingCode {
    Scalar mark;
    std::int32_t code;
};

// How values become codes: value = code * step + offset, where the offset is `-origin` steps.
template <class Scalar>
struct Packing {
    Scalar step, offset;
    double origin;           // the code of 0, which need not be among the codes
    std::int32_t low, high;  // codes of valid values
    double bound;            // of the error of each value
    bool zeros;              // whether no value but 0 may become 0
    std::span<const MissingCode<Scalar>> missing;
    std::int32_t nan_code;  // of NaN; `high` + 1 if NaN is refused
    // Smallest and largest valid value, which no other value may reach, and their codes.
    Scalar valid_low = -std::numeric_limits<Scalar>::infinity(), valid_high = std::numeric_limits<Scalar>::infinity();
    std::int32_t valid_low_code = std::numeric_limits<std::int32_t>::min(),
                 valid_high_code = std::numeric_limits<std::int32_t>::max();
};

struct Packed {
    double error = 0;             // the largest, of valid values
    std::size_t missing = 0;      // values
    std::ptrdiff_t refused = -1;  // index of the first value without a code; -1 if all have one
};

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

// Codes of a block without branches; whether all values have one. Without `Missing`, no value may be missing; with it,
// those are NaN or the first mark. In the compilers' own vectors of two: one source for SSE2, NEON and others.
template <bool Missing, class Scalar, class Code>
[[gnu::noinline]] bool pack_block(const Packing<Scalar>& packing, std::span<const Scalar> in, Code* out,
                                  Packed& packed) {
    using Values [[gnu::vector_size(2 * sizeof(Scalar))]] = Scalar;
    using Doubles [[gnu::vector_size(16)]] = double;
    using Masks [[gnu::vector_size(16)]] = std::int64_t;
    const bool has_mark = !packing.missing.empty();
    const Doubles mark = Doubles{} + (has_mark ? static_cast<double>(packing.missing[0].mark) : NAN);
    const Doubles mark_code = Doubles{} + (has_mark ? packing.missing[0].code : 0),
                  nan_code = Doubles{} + packing.nan_code;
    const Masks takes_nan = Masks{} - (packing.nan_code <= packing.high);
    const Doubles step = Doubles{} + static_cast<double>(packing.step),
                  offset = Doubles{} + static_cast<double>(packing.offset);
    const Doubles low = Doubles{} + packing.low, high = Doubles{} + packing.high, origin = Doubles{} + packing.origin;
    constexpr double shift = 6755399441055744.0;  // as in nearest
    const Masks no_sign = Masks{} + std::numeric_limits<std::int64_t>::max();
    Doubles largest{};
    Masks plain = ~Masks{}, missing{};
    const auto take = [&](std::size_t i, std::size_t j) {
        const Values values{in[i], in[j]};
        const Doubles exact = __builtin_convertvector(values, Doubles);
        Doubles code = ((exact / step + shift) - shift) + origin;
        code = code > low ? code : low;  // NaN, too
        code = code < high ? code : high;
        // What readers unpack in the type of the source, and in doubles.
        const Values own = __builtin_convertvector(code, Values) * packing.step + packing.offset;
        const Doubles wide_error =
            reinterpret_cast<Doubles>(reinterpret_cast<Masks>(exact - (code * step + offset)) & no_sign);
        const Doubles own_error =
            reinterpret_cast<Doubles>(reinterpret_cast<Masks>(exact - __builtin_convertvector(own, Doubles)) & no_sign);
        Doubles error = own_error > wide_error ? own_error : wide_error;
        if constexpr (Missing) {
            const Masks is_nan = exact != exact, is_mark = exact == mark, is_missing = (is_nan & takes_nan) | is_mark;
            error = reinterpret_cast<Doubles>(reinterpret_cast<Masks>(error) & ~is_missing);
            code = is_mark ? mark_code : code;
            code = is_nan ? nan_code : code;
            missing -= is_missing;
        }
        plain &= error <= packing.bound;  // NaN is not
        largest = error > largest ? error : largest;
        out[i] = static_cast<Code>(static_cast<std::int32_t>(code[0]));
        out[j] = static_cast<Code>(static_cast<std::int32_t>(code[1]));
    };
    std::size_t at = 0;
    for (; at + 2 <= in.size(); at += 2) take(at, at + 1);
    if (at < in.size()) {
        const std::int64_t counted = missing[1];
        take(at, at);
        missing[1] = counted;
    }
    if ((plain[0] & plain[1]) == 0) return false;
    packed.error = std::max({packed.error, largest[0], largest[1]});
    packed.missing += static_cast<std::size_t>(missing[0] + missing[1]);
    return true;
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
Packed pack(const Packing<Scalar>& packing, std::span<const Scalar> in, Code* out) {
    Packed packed;
    const bool compares = detail::compares(packing);
    bool has_missing = false;  // the last block, and so probably the next one
    detail::each_block(in, [&](std::size_t at, std::size_t count) {
        if (packed.refused >= 0) return;
        const auto block = in.subspan(at, count);
        const bool near = compares && detail::is_near(packing, block);
        if (!near && !has_missing && detail::pack_block<false>(packing, block, out + at, packed)) return;
        const std::size_t missing = packed.missing;
        if (!near && !compares && detail::pack_block<true>(packing, block, out + at, packed)) {
            has_missing = packed.missing != missing;
            return;
        }
        const std::size_t done = detail::pack_slowly(packing, block, out + at, packed);
        if (done < count) packed.refused = static_cast<std::ptrdiff_t>(at + done);
    });
    return packed;
}

}  // namespace tamis::values
