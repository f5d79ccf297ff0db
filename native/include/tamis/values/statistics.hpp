// What is added up about the valid values of two arrays in one pass: range, errors and moments.
//
// Values are taken some at a time, few enough to stay in the processor's nearest cache while each sum goes through them
// again. Sums over them are added up as if they were those of separate arrays, so that rounding does not grow with the
// number of values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <type_traits>

#include "tamis/values/quantize.hpp"

namespace tamis::values {

// A sum of squares, mantissa * 4^exponent, which neither overflows nor underflows.
struct SquareSum {
    double mantissa = 0;
    int exponent = 0;

    void add(const SquareSum& other) {
        if (other.mantissa == 0) return;
        if (mantissa == 0) {
            *this = other;
            return;
        }
        const int larger = std::max(exponent, other.exponent);
        mantissa =
            std::ldexp(mantissa, 2 * (exponent - larger)) + std::ldexp(other.mantissa, 2 * (other.exponent - larger));
        exponent = larger;
    }
};

// Means, sums of squared deviations from them, and of the products of both deviations.
struct PairMoments {
    std::size_t count = 0;
    std::array<double, 2> mean{}, square{};
    double product = 0;

    void add(const PairMoments& other) {
        if (other.count == 0) return;
        const double whole = static_cast<double>(count + other.count);
        const double share = static_cast<double>(other.count) / whole, weight = static_cast<double>(count) * share;
        std::array<double, 2> apart{};
        for (std::size_t side = 0; side < 2; ++side) {
            apart[side] = other.mean[side] - mean[side];
            mean[side] += apart[side] * share;
            square[side] += other.square[side] + apart[side] * apart[side] * weight;
        }
        product += other.product + apart[0] * apart[1] * weight;
        count += other.count;
    }
};

// Errors of integers are exact, those of floats rounded once.
template <class Scalar>
using Error = std::conditional_t<!std::is_integral_v<Scalar>, double,
                                 std::conditional_t<sizeof(Scalar) <= 2, std::int32_t, std::uint64_t>>;

// Of values that are not missing; `low` and `high` mean something if there are any.
template <class Scalar>
struct Statistics {
    std::size_t count = 0;
    Scalar low{}, high{};
    Error<Scalar> largest{};  // infinite if a value became NaN
    SquareSum squares;        // of the errors
    PairMoments moments;      // if they were asked for
};

namespace detail {

// Sums and extremes in several lanes, each for itself: compilers make vectors of them, because the order stays as
// written. One term at a time, because compilers make no vectors of several.
template <class T, class At, class Join>
T joined(std::size_t count, T start, At at, Join join) {
    constexpr std::size_t lane_count = 16;
    std::array<T, lane_count> lanes;
    lanes.fill(start);
    std::size_t i = 0;
    for (; i + lane_count <= count; i += lane_count)
        for (std::size_t lane = 0; lane < lane_count; ++lane) lanes[lane] = join(lanes[lane], at(i + lane));
    for (; i < count; ++i) lanes[0] = join(lanes[0], at(i));
    for (const T& lane : lanes) start = join(start, lane);
    return start;
}

template <class At>
double sum(std::size_t count, At at) {
    return joined(count, 0.0, at, [](double a, double b) { return a + b; });
}

template <class Scalar>
Error<Scalar> error_of(Scalar was, Scalar now) {
    if constexpr (std::is_integral_v<Scalar>) {
        const auto larger = static_cast<Error<Scalar>>(std::max(was, now));
        return larger - static_cast<Error<Scalar>>(std::min(was, now));
    } else {
        const double error = std::abs(static_cast<double>(was) - static_cast<double>(now));
        return error == error ? error : std::numeric_limits<double>::infinity();
    }
}

// The exponent of a number whose square would underflow or overflow; 0 of any other number.
inline int scale_of(double largest) {
    if (!std::isfinite(largest)) return 0;
    int exponent = 0;
    std::frexp(largest, &exponent);
    return std::abs(exponent) > 400 ? exponent : 0;
}

// The sum of the squares of errors, of which the largest is given.
template <class Scalar>
SquareSum squares_of(const std::array<Error<Scalar>, block_size>& errors, std::size_t count, double largest) {
    const int exponent = scale_of(largest);
    const auto squares = [&](auto scaled) {
        return sum(count, [&](std::size_t i) {
            const double error = scaled(static_cast<double>(errors[i]));
            return error * error;
        });
    };
    if (exponent == 0) return {squares([](double error) { return error; }), 0};
    return {squares([&](double error) { return std::ldexp(error, -exponent); }), exponent};
}

template <class Scalar>
PairMoments moments_of(const Scalar* first, const Scalar* second, std::size_t count) {
    std::array<std::array<double, block_size>, 2> apart;
    PairMoments found;
    found.count = count;
    for (std::size_t side = 0; side < 2; ++side) {
        const Scalar* const values = side == 0 ? first : second;
        // From one of them, so that equal values have no deviation.
        const auto origin = static_cast<double>(values[0]);
        for (std::size_t i = 0; i < count; ++i) apart[side][i] = static_cast<double>(values[i]) - origin;
        const double mean = sum(count, [&](std::size_t i) { return apart[side][i]; }) / static_cast<double>(count);
        for (std::size_t i = 0; i < count; ++i) apart[side][i] -= mean;
        found.mean[side] = origin + mean;
        found.square[side] = sum(count, [&](std::size_t i) { return apart[side][i] * apart[side][i]; });
    }
    found.product = sum(count, [&](std::size_t i) { return apart[0][i] * apart[1][i]; });
    return found;
}

// The errors of a block; returns the largest.
template <class Scalar>
Error<Scalar> errors_of(const Scalar* before, const Scalar* after, std::size_t count,
                        std::array<Error<Scalar>, block_size>& errors) {
    for (std::size_t i = 0; i < count; ++i) errors[i] = error_of(before[i], after[i]);
    return joined(
        count, Error<Scalar>{}, [&](std::size_t i) { return errors[i]; },
        [](Error<Scalar> a, Error<Scalar> b) { return a < b ? b : a; });
}

// Of a block without missing values, which is not empty.
template <class Scalar>
void add_block(const Scalar* before, const Scalar* after, std::size_t count, bool moments, Statistics<Scalar>& found) {
    const auto value = [&](std::size_t i) { return before[i]; };
    const Scalar low = joined(count, before[0], value, [](Scalar a, Scalar b) { return b < a ? b : a; });
    const Scalar high = joined(count, before[0], value, [](Scalar a, Scalar b) { return a < b ? b : a; });
    found.low = found.count == 0 ? low : std::min(found.low, low);
    found.high = found.count == 0 ? high : std::max(found.high, high);
    found.count += count;
    std::array<Error<Scalar>, block_size> errors;
    const auto largest = errors_of(before, after, count, errors);
    found.largest = std::max(found.largest, largest);
    found.squares.add(squares_of<Scalar>(errors, count, static_cast<double>(largest)));
    if (moments) found.moments.add(moments_of(before, after, count));
}

template <class Scalar>
bool has_missing(std::span<const Scalar> values, std::span<const Scalar> marks) {
    if constexpr (std::is_floating_point_v<Scalar>)
        if (!std::isfinite(largest_magnitude(values))) return true;
    return std::any_of(marks.begin(), marks.end(), [&](Scalar mark) {
        std::size_t count = 0;
        for (const Scalar value : values) count += value == mark;
        return count != 0;
    });
}

}  // namespace detail

// Of two arrays of one size; values that are missing in the first are left out.
template <class Scalar>
Statistics<Scalar> statistics(std::span<const Scalar> before, std::span<const Scalar> after,
                              std::span<const Scalar> marks, bool moments) {
    Statistics<Scalar> found;
    std::array<Scalar, detail::block_size> valid_was, valid_now;
    detail::each_block(before, [&](std::size_t at, std::size_t count) {
        const auto was = before.subspan(at, count), now = after.subspan(at, count);
        if (!detail::has_missing(was, marks)) {
            detail::add_block(was.data(), now.data(), count, moments, found);
            return;
        }
        std::size_t valid = 0;
        for (std::size_t i = 0; i < count; ++i) {
            bool is_valid = true;
            if constexpr (std::is_floating_point_v<Scalar>) is_valid = std::isfinite(was[i]);
            for (const Scalar mark : marks) is_valid &= was[i] != mark;
            valid_was[valid] = was[i];
            valid_now[valid] = now[i];
            valid += is_valid;
        }
        if (valid != 0) detail::add_block(valid_was.data(), valid_now.data(), valid, moments, found);
    });
    return found;
}

// Of two arrays of one size that is not 0, whose values are all valid.
struct ValidErrors {
    std::size_t worst = 0;  // index of the first with the largest error
    double largest = 0;
    double relative = 0;         // the largest relative to a value that is not 0
    double stored_relative = 0;  // as `relative_error`
    std::size_t zeros_changed = 0;
    SquareSum squares;
};

namespace detail {

inline double larger(double a, double b) { return a < b ? b : a; }

template <class Scalar>
void add_relative(std::span<const Scalar> before, std::span<const Scalar> after, const double* errors, double zero,
                  ValidErrors& found) {
    const std::size_t count = before.size();
    const auto magnitude = [&](std::size_t i) { return std::abs(before[i]); };
    const Scalar least = joined(count, magnitude(0), magnitude, [](Scalar a, Scalar b) { return b < a ? b : a; });
    if (zero == 0 && least >= std::numeric_limits<Scalar>::min()) {  // then both are the same
        const auto ratio = [&](std::size_t i) { return errors[i] / static_cast<double>(magnitude(i)); };
        const double largest = joined(count, 0.0, ratio, larger);
        found.relative = larger(found.relative, largest);
        found.stored_relative = larger(found.stored_relative, largest);
        return;
    }
    found.stored_relative = larger(found.stored_relative, relative_error(before, after));
    const auto stored_zero = static_cast<Scalar>(zero);
    const auto ratio = [&](std::size_t i) {
        const double size = std::abs(static_cast<double>(before[i]) - zero);
        return errors[i] / (before[i] == stored_zero ? std::numeric_limits<double>::infinity() : size);
    };
    found.relative = larger(found.relative, joined(count, 0.0, ratio, larger));
    for (std::size_t i = 0; i < count; ++i) found.zeros_changed += before[i] == stored_zero && errors[i] != 0;
}

}  // namespace detail

// `zero` is the value that means 0.
template <class Scalar>
ValidErrors valid_errors(std::span<const Scalar> before, std::span<const Scalar> after, double zero) {
    ValidErrors found;
    detail::each_block(before, [&](std::size_t at, std::size_t count) {
        const auto was = before.subspan(at, count), now = after.subspan(at, count);
        std::array<double, detail::block_size> errors;
        const double largest = detail::errors_of(was.data(), now.data(), count, errors);
        if (largest == 0) return;
        if (largest > found.largest) {
            found.largest = largest;
            const auto first = std::find(errors.begin(), errors.end(), largest);
            found.worst = at + static_cast<std::size_t>(first - errors.begin());
        }
        found.squares.add(detail::squares_of<Scalar>(errors, count, largest));
        detail::add_relative(was, now, errors.data(), zero, found);
    });
    return found;
}

}  // namespace tamis::values
