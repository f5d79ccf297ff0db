// A kernel of packing, out of vectors of a size: `Family::nbytes`. A family is a type of the kernel's own file, so that
// no two instruction sets share an instantiation.
#pragma once

#include <cmath>
#include <cstring>

#include "tamis/values/packing.hpp"

namespace tamis::values::detail {

// Lanes that are filled from the last value, where fewer than a vector are left, count once.
template <class Family, bool Missing, class Scalar, class Code>
bool pack_block(const Packing<Scalar>& packing, std::span<const Scalar> in, Code* out, Packed& packed) {
    constexpr std::size_t lanes = Family::nbytes / sizeof(double);
    using Values = typename VectorOf<Scalar, lanes>::Type;
    using Doubles = typename VectorOf<double, lanes>::Type;
    using Masks = typename VectorOf<std::int64_t, lanes>::Type;
    using Wholes = typename VectorOf<std::int32_t, lanes>::Type;
    using CodeLanes = typename VectorOf<Code, lanes>::Type;

    const bool has_mark = !packing.missing.empty();
    const Doubles mark = Doubles{} + (has_mark ? static_cast<double>(packing.missing[0].mark) : NAN);
    const Doubles mark_code = Doubles{} + (has_mark ? packing.missing[0].code : 0),
                  nan_code = Doubles{} + packing.nan_code;
    const Masks takes_nan = Masks{} - (packing.nan_code <= packing.high);
    const Doubles step = Doubles{} + static_cast<double>(packing.step),
                  offset = Doubles{} + static_cast<double>(packing.offset);
    const Doubles low = Doubles{} + packing.low, high = Doubles{} + packing.high, origin = Doubles{} + packing.origin;
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52: its sum with a number is rounded to a whole one
    const Masks no_sign = Masks{} + std::numeric_limits<std::int64_t>::max();
    Doubles largest{};
    Masks plain = ~Masks{}, missing{};

    const auto codes_of = [&](Values values) {
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
        return __builtin_convertvector(__builtin_convertvector(code, Wholes), CodeLanes);
    };

    std::size_t at = 0;
    for (; at + lanes <= in.size(); at += lanes) {
        Values values;
        std::memcpy(&values, in.data() + at, sizeof values);
        const CodeLanes codes = codes_of(values);
        std::memcpy(out + at, &codes, sizeof codes);
    }
    if (const std::size_t rest = in.size() - at; rest > 0) {
        Values values = Values{} + in[in.size() - 1];
        std::memcpy(&values, in.data() + at, rest * sizeof(Scalar));
        const Masks counted = missing;
        const CodeLanes codes = codes_of(values);
        std::memcpy(out + at, &codes, rest * sizeof(Code));
        for (std::size_t lane = rest; lane < lanes; ++lane) missing[lane] = counted[lane];
    }

    std::int64_t all = -1, count = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        all &= plain[lane];
        count += missing[lane];
    }
    if (all == 0) return false;
    for (std::size_t lane = 0; lane < lanes; ++lane)
        packed.error = largest[lane] > packed.error ? largest[lane] : packed.error;
    packed.missing += static_cast<std::size_t>(count);
    return true;
}

template <class Family, class Scalar, class Code>
constexpr PackBlocks<Scalar, Code> blocks_of() {
    return {pack_block<Family, false, Scalar, Code>, pack_block<Family, true, Scalar, Code>};
}

template <class Family>
constexpr PackKernel pack_kernel_of() {
    return {blocks_of<Family, float, std::int8_t>(),   blocks_of<Family, float, std::int16_t>(),
            blocks_of<Family, float, std::int32_t>(),  blocks_of<Family, double, std::int8_t>(),
            blocks_of<Family, double, std::int16_t>(), blocks_of<Family, double, std::int32_t>()};
}

}  // namespace tamis::values::detail
