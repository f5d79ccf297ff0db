// What a check of floats wants to know of them, found in one pass: how large they are, how far from others, and which
// of them are missing, that is NaN, infinite, or equal to a mark.
//
// Values are taken some at a time, few enough for the processor's nearest cache. Loops without branches, which
// compilers turn into vectors, find out whether all is plain there; only where it is not, values are looked at one by
// one.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

namespace tamis::values {

// Of one array.
struct Survey {
    double largest = 0;       // magnitude of a finite value
    std::size_t missing = 0;  // values
    bool finite = true;       // all of them
};

// Of two arrays. A mark that stayed one has no error, nor has NaN that stayed any NaN; an infinity, or NaN, that became
// something else has an infinite one.
struct Difference {
    double error = 0;         // the largest, absolute
    bool kept = true;         // the missing values of the first, and no others, are missing, with the same bits
    std::size_t missing = 0;  // values of the first
};

namespace detail {

inline constexpr std::size_t block_size = 1024;

template <class Scalar>
using Bits = std::conditional_t<sizeof(Scalar) == 4, std::int32_t, std::int64_t>;

// In the compilers' own vectors: one source for SSE2, NEON and machines without either.
template <class Scalar>
struct Vector {
    static constexpr std::size_t size = 16 / sizeof(Scalar);
    using Values [[gnu::vector_size(16)]] = Scalar;
    using Masks [[gnu::vector_size(16)]] = Bits<Scalar>;

    // Zeros where fewer are asked for.
    static Values load(const Scalar* in, std::size_t count = size) {
        Values values{};
        std::memcpy(&values, in, count * sizeof(Scalar));
        return values;
    }
    static Values magnitude(Values values) {
        return reinterpret_cast<Values>(reinterpret_cast<Masks>(values) & std::numeric_limits<Bits<Scalar>>::max());
    }
};

// The largest of several magnitudes.
template <class Scalar>
struct Largest {
    typename Vector<Scalar>::Values values{};
    typename Vector<Scalar>::Masks finite = ~typename Vector<Scalar>::Masks{};

    void take(typename Vector<Scalar>::Values next) {
        finite &= next < std::numeric_limits<Scalar>::infinity();  // NaN is not
        values = next > values ? next : values;
    }
    // Infinite where one is not finite.
    Scalar get() const {
        Scalar found = 0;
        for (std::size_t lane = 0; lane < Vector<Scalar>::size; ++lane)
            found = std::max(found, finite[lane] != 0 ? values[lane] : std::numeric_limits<Scalar>::infinity());
        return found;
    }
};

// The largest of `count` magnitudes: `at(i, n)` gives n of them from i on.
//
// Taken four by four, since each maximum would wait for the one before: 2.5 times as fast.
template <class Scalar, class At>
Scalar largest_of(std::size_t count, At at) {
    constexpr std::size_t size = Vector<Scalar>::size;
    Largest<Scalar> largest[4];
    std::size_t i = 0;
    for (; i + 4 * size <= count; i += 4 * size)
        for (std::size_t k = 0; k < 4; ++k) largest[k].take(at(i + k * size, size));
    for (; i + size <= count; i += size) largest[0].take(at(i, size));
    if (i < count) largest[0].take(at(i, count - i));
    return std::max({largest[0].get(), largest[1].get(), largest[2].get(), largest[3].get()});
}

template <class Scalar>
[[gnu::noinline]] Scalar largest_magnitude(std::span<const Scalar> values) {
    using Lanes = Vector<Scalar>;
    return largest_of<Scalar>(values.size(), [&](std::size_t i, std::size_t count) {
        return Lanes::magnitude(Lanes::load(values.data() + i, count));
    });
}

// Rounded to the type of the values.
template <class Scalar>
[[gnu::noinline]] Scalar largest_distance(std::span<const Scalar> a, std::span<const Scalar> b) {
    using Lanes = Vector<Scalar>;
    return largest_of<Scalar>(a.size(), [&](std::size_t i, std::size_t count) {
        return Lanes::magnitude(Lanes::load(a.data() + i, count) - Lanes::load(b.data() + i, count));
    });
}

// In double precision, so that the difference of two floats of like size is not rounded.
[[gnu::noinline]] inline double largest_wide_distance(std::span<const float> a, std::span<const float> b) {
    using Doubles = Vector<double>;
    using Pair [[gnu::vector_size(8)]] = float;
    return largest_of<double>(a.size(), [&](std::size_t i, std::size_t count) {
        Pair x{}, y{};
        std::memcpy(&x, a.data() + i, count * sizeof(float));
        std::memcpy(&y, b.data() + i, count * sizeof(float));
        return Doubles::magnitude(__builtin_convertvector(x, Doubles::Values) -
                                  __builtin_convertvector(y, Doubles::Values));
    });
}

template <class Scalar>
[[gnu::noinline]] std::size_t count_equal(std::span<const Scalar> values, Scalar mark) {
    using Lanes = Vector<Scalar>;
    typename Lanes::Masks negative{};
    std::size_t i = 0, count = 0;
    for (; i + Lanes::size <= values.size(); i += Lanes::size) negative += Lanes::load(values.data() + i) == mark;
    for (; i < values.size(); ++i) count += values[i] == mark;
    for (std::size_t lane = 0; lane < Lanes::size; ++lane) count += static_cast<std::size_t>(-negative[lane]);
    return count;
}

template <class Scalar>
std::size_t count_marked(std::span<const Scalar> values, std::span<const Scalar> marks) {
    std::size_t count = 0;
    for (const Scalar mark : marks) count += count_equal(values, mark);  // no two are equal
    return count;
}

template <class Scalar>
bool is_missing(Scalar value, std::span<const Scalar> marks) {
    return !std::isfinite(value) || std::find(marks.begin(), marks.end(), value) != marks.end();
}

template <class Scalar>
void compare_one(Scalar was, Scalar now, std::span<const Scalar> marks, Difference& found) {
    const bool missing = is_missing(was, marks);
    found.missing += missing;
    if (std::bit_cast<Bits<Scalar>>(was) == std::bit_cast<Bits<Scalar>>(now)) return;
    if (missing || is_missing(now, marks)) found.kept = false;
    if (std::isnan(was) && std::isnan(now)) return;
    const double distance = std::abs(static_cast<double>(was) - static_cast<double>(now));
    found.error = std::max(found.error, std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
}

template <class Scalar, class F>
void each_block(std::span<const Scalar> values, F f) {
    for (std::size_t at = 0; at < values.size(); at += block_size) f(at, std::min(block_size, values.size() - at));
}

}  // namespace detail

template <class Scalar>
Survey survey(std::span<const Scalar> values, std::span<const Scalar> marks) {
    Survey found;
    detail::each_block(values, [&](std::size_t at, std::size_t count) {
        const auto block = values.subspan(at, count);
        if (const Scalar largest = detail::largest_magnitude(block); std::isfinite(largest)) {
            found.largest = std::max(found.largest, static_cast<double>(largest));
            found.missing += detail::count_marked(block, marks);
            return;
        }
        found.finite = false;
        for (const Scalar value : block) {
            found.missing += detail::is_missing(value, marks);
            if (std::isfinite(value)) found.largest = std::max(found.largest, std::abs(static_cast<double>(value)));
        }
    });
    return found;
}

// Both arrays have the same size.
template <class Scalar>
Difference compare(std::span<const Scalar> expected, std::span<const Scalar> found_values,
                   std::span<const Scalar> marks) {
    Difference found;
    Scalar furthest = 0;
    detail::each_block(expected, [&](std::size_t at, std::size_t count) {
        const auto was = expected.subspan(at, count), now = found_values.subspan(at, count);
        const Scalar distance = detail::largest_distance(was, now);
        if (std::isfinite(distance) && detail::count_marked(was, marks) + detail::count_marked(now, marks) == 0) {
            // Rounding keeps the order: only a block that comes as far as the furthest so far can have a larger error.
            if (distance < furthest) return;
            furthest = distance;
            if constexpr (sizeof(Scalar) == 4)
                found.error = std::max(found.error, detail::largest_wide_distance(was, now));
            else
                found.error = std::max(found.error, distance);
        } else if (std::memcmp(was.data(), now.data(), was.size_bytes()) == 0)
            found.missing += survey(was, marks).missing;
        else
            for (std::size_t i = 0; i < count; ++i) detail::compare_one(was[i], now[i], marks, found);
    });
    return found;
}

}  // namespace tamis::values
