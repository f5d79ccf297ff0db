// The smallest and the largest value of an array, and which of them mean missing, found in one pass.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "tamis/values/difference.hpp"

namespace tamis::values {

// Of valid values: those that are neither NaN nor equal a mark. Without any, the low end is above the high one.
template <class Scalar>
struct Extent {
    Scalar low = std::numeric_limits<Scalar>::infinity(), high = -std::numeric_limits<Scalar>::infinity();
    bool has_nan = false;
};

namespace detail {

// Taken four by four, since each minimum would wait for the one before.
template <bool Marked, class Scalar>
[[gnu::noinline]] Extent<Scalar> extent_of_block(std::span<const Scalar> values, std::span<const Scalar> marks) {
    using Lanes = Vector<Scalar>;
    using Values = typename Lanes::Values;
    using Masks = typename Lanes::Masks;
    constexpr Scalar infinite = std::numeric_limits<Scalar>::infinity();
    Values low[4], high[4];
    Masks ordered[4];
    for (std::size_t k = 0; k < 4; ++k) {
        low[k] = Values{} + infinite;
        high[k] = Values{} - infinite;
        ordered[k] = ~Masks{};
    }
    const auto take = [&](std::size_t k, Values next) {
        Values least = next, most = next;
        if constexpr (Marked) {
            for (const Scalar mark : marks) {
                least = next == mark ? Values{} + infinite : least;
                most = next == mark ? Values{} - infinite : most;
            }
        }
        ordered[k] &= next == next;
        low[k] = least < low[k] ? least : low[k];
        high[k] = most > high[k] ? most : high[k];
    };
    std::size_t i = 0;
    for (; i + 4 * Lanes::size <= values.size(); i += 4 * Lanes::size)
        for (std::size_t k = 0; k < 4; ++k) take(k, Lanes::load(values.data() + i + k * Lanes::size));
    for (; i + Lanes::size <= values.size(); i += Lanes::size) take(0, Lanes::load(values.data() + i));
    for (; i < values.size(); ++i) take(0, Values{} + values[i]);
    Extent<Scalar> found;
    for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t lane = 0; lane < Lanes::size; ++lane) {
            found.low = low[k][lane] < found.low ? low[k][lane] : found.low;
            found.high = high[k][lane] > found.high ? high[k][lane] : found.high;
            found.has_nan |= ordered[k][lane] == 0;
        }
    return found;
}

}  // namespace detail

// No mark is NaN. `marked`, one for each mark, becomes true where some value equals it.
template <class Scalar>
Extent<Scalar> extent_of(std::span<const Scalar> values, std::span<const Scalar> marks, std::span<bool> marked) {
    Extent<Scalar> found;
    detail::each_block(values, [&](std::size_t at, std::size_t count) {
        const auto block = values.subspan(at, count);
        Extent<Scalar> own = detail::extent_of_block<false>(block, marks);
        // Only a mark between the ends can be among the values.
        const auto is_inside = [&](Scalar mark) { return own.low <= mark && mark <= own.high; };
        if (std::any_of(marks.begin(), marks.end(), is_inside)) {
            for (std::size_t i = 0; i < marks.size(); ++i)
                marked[i] = marked[i] || detail::count_equal(block, marks[i]) > 0;
            own = detail::extent_of_block<true>(block, marks);
        }
        found.low = std::min(found.low, own.low);
        found.high = std::max(found.high, own.high);
        found.has_nan |= own.has_nan;
    });
    return found;
}

}  // namespace tamis::values
