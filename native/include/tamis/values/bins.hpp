// How many values lie in each of many bins, for any numbers: bins are those of ordered whole numbers, so that bins of
// one array can be joined with those of another, and coarser bins hold whole finer ones.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace tamis::values {

// A whole number that rises with the value, by one to the next larger float; the same for both zeros. Not for NaN.
template <class Scalar>
std::int64_t ordered(Scalar value) {
    if constexpr (std::is_integral_v<Scalar>) {
        return value;
    } else {
        using Bits = std::conditional_t<sizeof(Scalar) == 4, std::int32_t, std::int64_t>;
        const auto bits = std::bit_cast<Bits>(value);
        return bits >= 0 ? bits : std::numeric_limits<Bits>::min() - static_cast<std::int64_t>(bits);
    }
}

// Bins of 2^step neighbouring floats or integers each.
class OrderedBins {
public:
    explicit OrderedBins(int step) : step_(step) {}

    template <class Scalar>
    std::int64_t operator()(Scalar value) const {
        return ordered(value) >> step_;
    }

private:
    int step_;
};

// Bins of the width 2^step, of finite values below 2^62 of it in magnitude; all others share the last bin.
class EqualBins {
public:
    // Two factors, since one of them may be no double.
    explicit EqualBins(int step) : first_(std::ldexp(1.0, -(step / 2))), second_(std::ldexp(1.0, -(step - step / 2))) {}

    template <class Scalar>
    std::int64_t operator()(Scalar value) const {
        const double scaled = static_cast<double>(value) * first_ * second_;  // exact, or of a magnitude below 1
        if (!(std::abs(scaled) < 0x1p62)) return std::numeric_limits<std::int64_t>::max();
        const auto whole = static_cast<std::int64_t>(scaled);
        return whole - (scaled < static_cast<double>(whole) || (scaled == 0 && value < 0));
    }

private:
    double first_, second_;
};

// Add to the count of the bin of each value; `first` is the number of the first bin. False, and some values are
// counted, if one lies in none of them.
template <class Scalar, class Bins>
bool count_in_bins(std::span<const Scalar> values, const Bins& bin_of, std::int64_t first,
                   std::span<std::int64_t> counts) {
    for (const Scalar value : values) {
        const std::uint64_t at = static_cast<std::uint64_t>(bin_of(value)) - static_cast<std::uint64_t>(first);
        if (at >= counts.size()) return false;
        ++counts[at];
    }
    return true;
}

}  // namespace tamis::values
