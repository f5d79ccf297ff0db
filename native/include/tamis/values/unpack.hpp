// The values that codes of packing stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "tamis/values/packing.hpp"

namespace tamis::values {

namespace detail {

// In the compilers' own vectors. `missing` has so many codes. Both sides of a comparison are as wide as
// the values: codes become values' numbers, but for those of 32 bits, which float32 holds only up to 2^24.
template <std::size_t count, class Code, class Scalar>
void unpack_each(std::span<const Code> codes, Scalar step, Scalar offset, std::span<const MissingCode<Scalar>> missing,
                 Scalar* out) {
    constexpr std::size_t lanes = 16 / sizeof(Scalar);
    using Codes = typename VectorOf<Code, lanes>::Type;
    using Values = typename VectorOf<Scalar, lanes>::Type;
    using Compared = std::conditional_t<sizeof(Code) == 4 && sizeof(Scalar) == 4, Codes, Values>;
    const auto values_of = [&](Codes some) {
        const Compared compared = __builtin_convertvector(some, Compared);
        Values values = __builtin_convertvector(some, Values) * step + offset;
        for (std::size_t k = 0; k < count; ++k)
            values = compared == __builtin_convertvector(VectorOf<std::int32_t, lanes>::of(missing[k].code), Compared)
                         ? VectorOf<Scalar, lanes>::of(missing[k].mark)
                         : values;
        return values;
    };
    std::size_t i = 0;
    for (; i + lanes <= codes.size(); i += lanes) {
        Codes some;
        std::memcpy(&some, codes.data() + i, sizeof some);
        const Values values = values_of(some);
        std::memcpy(out + i, &values, sizeof values);
    }
    if (const std::size_t rest = codes.size() - i; rest > 0) {
        Codes some{};
        std::memcpy(&some, codes.data() + i, rest * sizeof(Code));
        const Values values = values_of(some);
        std::memcpy(out + i, &values, rest * sizeof(Scalar));
    }
}

}  // namespace detail

inline constexpr std::size_t most_missing_codes = 2;  // `_FillValue` and `missing_value`

// value = code * step + offset, each operation rounded to the type of the values; codes of missing values become marks.
template <class Code, class Scalar>
void unpack(std::span<const Code> codes, Scalar step, Scalar offset, std::span<const MissingCode<Scalar>> missing,
            Scalar* out) {
    switch (missing.size()) {
        case 0:
            for (std::size_t i = 0; i < codes.size(); ++i) out[i] = static_cast<Scalar>(codes[i]) * step + offset;
            return;
        case 1:
            return detail::unpack_each<1>(codes, step, offset, missing, out);
        default:
            return detail::unpack_each<most_missing_codes>(codes, step, offset, missing, out);
    }
}

}  // namespace tamis::values
