// netCDF's quantization of floats, bit for bit: BitRound, granular BitRound and BitGroom, as nc_def_var_quantize asks
// for them. And rounding to multiples of a power of two, which netCDF does not have.
//
// A value that is missing (NaN, infinite, or equal to a mark) keeps its bits, and so does one that would become
// missing or cross a limit; netCDF lets those change. Zeros never change, and no value gets the other sign.
//
// Values are rounded some at a time, few enough for the processor's nearest cache, by loops that compilers turn into
// vectors; only where values are not plain, they are then looked at again.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <span>
#include <variant>
#include <vector>

#include "tamis/values/difference.hpp"

namespace tamis::values {

enum class Quantization : std::uint8_t { bitround, granular, bitgroom, absolute };

// What must not change: values that mark missing ones, and on which side of two limits a value is.
template <class Scalar>
struct Kept {
    std::span<const Scalar> marks;
    Scalar low = -std::numeric_limits<Scalar>::infinity(), high = std::numeric_limits<Scalar>::infinity();
};

namespace detail {

template <class Scalar>
using Word = std::make_unsigned_t<Bits<Scalar>>;

template <class Scalar>
inline constexpr int fraction_nbits = std::numeric_limits<Scalar>::digits - 1;  // 23 and 52
template <class Scalar>
inline constexpr int size_nbits = 8 * static_cast<int>(sizeof(Scalar)) - 1;  // all but the sign

// As many ones as bits are cleared.
template <class Scalar>
constexpr Word<Scalar> ones(int count) {
    return static_cast<Word<Scalar>>((Word<Scalar>{1} << count) - 1);
}

// To the nearest multiple of the last kept bit; a tie goes away from zero, and a carry goes into the exponent.
template <class Scalar>
constexpr Word<Scalar> rounded(Word<Scalar> word, Word<Scalar> cleared) {
    return static_cast<Word<Scalar>>((word + ((cleared + 1) >> 1)) & ~cleared);
}

template <class Scalar>
struct BitRound {
    Word<Scalar> cleared;

    explicit BitRound(int keepbits) : cleared(ones<Scalar>(fraction_nbits<Scalar> - keepbits)) {}
    Word<Scalar> operator()(Word<Scalar> word, Word<Scalar>) const { return rounded<Scalar>(word, cleared); }
};

// Values of even index are rounded to zero, others away from it.
template <class Scalar>
struct BitGroom {
    Word<Scalar> cleared;

    explicit BitGroom(int digits)
        : cleared(ones<Scalar>(fraction_nbits<Scalar> -
                               (static_cast<int>(std::ceil(digits * (std::numbers::ln10 / std::numbers::ln2))) + 1))) {}
    Word<Scalar> operator()(Word<Scalar> word, Word<Scalar> index) const {
        const Word<Scalar> set = word << 1 == 0 ? 0 : cleared;
        return index % 2 == 0 ? static_cast<Word<Scalar>>(word & ~cleared) : static_cast<Word<Scalar>>(word | set);
    }
};

// Bits to clear so that an error is at most half a unit of a decimal digit. Every operation is netCDF's, in its type
// and order: another one rounds otherwise and clears other bits near powers of ten.
template <class Scalar>
int granular_cleared(Scalar value, int digits) {
    constexpr double bits_per_digit = std::numbers::ln10 / std::numbers::ln2;
    constexpr double digits_per_bit = std::numbers::ln2 / std::numbers::ln10;
    int exponent = 0;
    const double log10_fraction = std::log10(std::fabs(std::frexp(static_cast<double>(value), &exponent)));
    const int whole_digits = static_cast<int>(std::floor(exponent * digits_per_bit + log10_fraction)) + 1;
    const int unit = static_cast<int>(std::floor(bits_per_digit * (whole_digits - digits)));
    const int leading = static_cast<int>(std::floor(exponent - bits_per_digit * log10_fraction));
    return std::clamp(fraction_nbits<Scalar> - (std::abs(leading - unit) - 1), 0, fraction_nbits<Scalar>);
}

// Within one exponent, the number of digits changes at most once, at a power of ten: a table of these places saves the
// logarithm of each value, and nine tenths of the time (benchmarks/rounding.py).
template <class Scalar>
class Granular {
public:
    explicit Granular(int digits) : digits_(digits), places_(Word<Scalar>{1} << exponent_nbits) {
        for (std::size_t exponent = 1; exponent + 1 < places_.size(); ++exponent) places_[exponent] = place(exponent);
    }
    Word<Scalar> operator()(Word<Scalar> word, Word<Scalar>) const {
        const Word<Scalar> size = word & ones<Scalar>(size_nbits<Scalar>);
        const Place& at = places_[size >> fraction_nbits<Scalar>];
        if (is_doubtful(size, at)) return word << 1 == 0 ? word : rounded<Scalar>(word, cleared(size));
        return rounded<Scalar>(word, size < at.next ? at.below : at.above);
    }

private:
    static constexpr int exponent_nbits = size_nbits<Scalar> - fraction_nbits<Scalar>;
    // Doubles this near to a power of ten, or above a power of two, may get the neighbour's bits, by the rounding of
    // the logarithm. Floats are further apart than that.
    static constexpr Word<Scalar> near_ten = sizeof(Scalar) == 4 ? 0 : 64, near_two = sizeof(Scalar) == 4 ? 0 : 4096;

    struct Place {
        Word<Scalar> next = 0;  // the first value with one more digit
        Word<Scalar> below = 0, above = 0;
    };

    static bool is_doubtful(Word<Scalar> size, const Place& at) {
        if (at.next == 0) return true;  // subnormal, NaN or infinite
        if constexpr (near_ten == 0)
            return false;
        else {
            const Word<Scalar> fraction = size & ones<Scalar>(fraction_nbits<Scalar>);
            return size - at.next + near_ten < 2 * near_ten || fraction - 1 < near_two;
        }
    }
    Word<Scalar> cleared(Word<Scalar> size) const {
        const auto value = std::bit_cast<Scalar>(size);
        return std::isfinite(value) ? ones<Scalar>(granular_cleared(value, digits_)) : 0;
    }
    Place place(std::size_t exponent) const {
        const Word<Scalar> first = static_cast<Word<Scalar>>(exponent) << fraction_nbits<Scalar>;
        Word<Scalar> low = first + near_two + 1, high = first + ones<Scalar>(fraction_nbits<Scalar>);
        const Word<Scalar> below = cleared(low), above = cleared(high);
        if (below == above) return {high + 1, below, below};
        while (high - low > 1) {
            const Word<Scalar> middle = low + (high - low) / 2;
            (cleared(middle) == below ? low : high) = middle;
        }
        return {high, below, above};
    }

    int digits_;
    std::vector<Place> places_;
};

// To the nearest multiple of 2**exponent; a tie goes to the even multiple. The sum with a power of two whose last bit
// is worth the step has no room for more bits: the processor rounds it, and every operation but this one is exact.
template <class Scalar>
struct Absolute {
    Scalar limit;  // larger values have no finer bits than the step

    explicit Absolute(int exponent) : limit(std::ldexp(Scalar{1}, exponent + fraction_nbits<Scalar>)) {}
    Word<Scalar> operator()(Word<Scalar> word, Word<Scalar>) const {
        const auto value = std::bit_cast<Scalar>(word);
        const Scalar shift = std::copysign(limit, value), multiple = (value + shift) - shift;
        const auto result = std::bit_cast<Word<Scalar>>(multiple);
        return ((std::abs(value) < limit) & (value != 0)) ? result : word;
    }
};

template <class Scalar>
bool is_between(Scalar value, const Kept<Scalar>& kept) {
    return !(value < kept.low) && !(value > kept.high);
}

// Whether no value of a block, nor what it is rounded to, can be missing or cross a limit.
template <class Scalar>
bool are_plain(std::span<const Scalar> values, const Kept<Scalar>& kept) {
    // Rounding at most doubles a value, and makes none of a subnormal one that is not.
    const Scalar reach = 2 * std::max(largest_magnitude(values), std::numeric_limits<Scalar>::min());
    if (!std::isfinite(reach) || !is_between(reach, kept) || !is_between(-reach, kept)) return false;
    return std::all_of(kept.marks.begin(), kept.marks.end(), [&](Scalar mark) { return std::abs(mark) > reach; });
}

// Restore the values of a block that have to keep their bits; returns how many of those are valid.
template <class Scalar>
[[gnu::noinline]] std::size_t restore(std::span<const Scalar> in, Scalar* out, const Kept<Scalar>& kept) {
    using Lanes = Vector<Scalar>;
    using Masks = typename Lanes::Masks;
    constexpr Scalar infinity = std::numeric_limits<Scalar>::infinity();
    Masks negative{};  // minus how many
    const auto restore_lanes = [&](std::size_t i, auto count) {
        const auto was = Lanes::load(in.data() + i, count), now = Lanes::load(out + i, count);
        Masks missing = ~(Lanes::magnitude(was) < infinity);
        Masks lost = ~(Lanes::magnitude(now) < infinity);
        lost |= ((was < kept.low) ^ (now < kept.low)) | ((was > kept.high) ^ (now > kept.high));
        for (const Scalar mark : kept.marks) {
            missing |= was == mark;
            lost |= now == mark;
        }
        negative += lost & ~missing & (was != now);
        const Masks stays = missing | lost;
        const Masks words = (reinterpret_cast<Masks>(was) & stays) | (reinterpret_cast<Masks>(now) & ~stays);
        std::memcpy(out + i, &words, count * sizeof(Scalar));
    };
    std::size_t i = 0;  // a count that compilers know makes loads and stores of one instruction
    for (; i + Lanes::size <= in.size(); i += Lanes::size)
        restore_lanes(i, std::integral_constant<std::size_t, Lanes::size>{});
    if (i < in.size()) restore_lanes(i, in.size() - i);
    std::size_t held = 0;
    for (std::size_t lane = 0; lane < Lanes::size; ++lane) held += static_cast<std::size_t>(-negative[lane]);
    return held;
}

template <class Scalar, class Round>
[[gnu::noinline]] void round_block(std::span<const Scalar> in, Scalar* out, const Round& round, std::size_t index) {
    for (std::size_t i = 0; i < in.size(); ++i)
        out[i] = std::bit_cast<Scalar>(round(std::bit_cast<Word<Scalar>>(in[i]), static_cast<Word<Scalar>>(index + i)));
}

template <class Scalar, class Round>
std::size_t round_all(std::span<const Scalar> in, Scalar* out, const Round& round, std::size_t index,
                      const Kept<Scalar>& kept) {
    std::size_t held = 0;
    each_block(in, [&](std::size_t at, std::size_t count) {
        const auto block = in.subspan(at, count);
        round_block(block, out + at, round, index + at);
        if (!are_plain(block, kept)) held += restore(block, out + at, kept);
    });
    return held;
}

// Relative errors take no account of subnormal numbers, as long as they become no larger than the smallest normal one,
// and zeros stay.
template <class Scalar>
double relative_distance(Scalar was, Scalar now) {
    constexpr Scalar least = std::numeric_limits<Scalar>::min();
    if (std::bit_cast<Bits<Scalar>>(was) == std::bit_cast<Bits<Scalar>>(now)) return 0;
    if (std::abs(was) < least && std::abs(now) <= least && (was != 0 || now == 0)) return 0;
    const double size = std::abs(static_cast<double>(was));
    const double ratio = std::abs(static_cast<double>(was) - static_cast<double>(now)) / size;
    return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

template <class Scalar>
[[gnu::noinline]] double largest_ratio(std::span<const Scalar> a, std::span<const Scalar> b) {
    using Doubles = Vector<double>;
    using Values = typename Doubles::Values;
    using Pair [[gnu::vector_size(2 * sizeof(Scalar))]] = Scalar;
    constexpr double least = std::numeric_limits<Scalar>::min(), infinity = std::numeric_limits<double>::infinity();
    const auto ratio = [&](std::size_t i, auto count) {
        Pair x{}, y{};
        std::memcpy(&x, a.data() + i, count * sizeof(Scalar));
        std::memcpy(&y, b.data() + i, count * sizeof(Scalar));
        const auto was = __builtin_convertvector(x, Values), now = __builtin_convertvector(y, Values);
        const auto size = Doubles::magnitude(was);
        const auto ignored = (Doubles::magnitude(now) <= least) & ((was != 0.0) | (now == 0.0));
        const Values of_small = ignored ? Values{infinity, infinity} : Values{};
        return Doubles::magnitude(was - now) / (size < least ? of_small : size);
    };
    return largest_of<double>(a.size(), [&](std::size_t i, std::size_t count) {
        return count == Doubles::size ? ratio(i, std::integral_constant<std::size_t, Doubles::size>{})
                                      : ratio(i, count);
    });
}

}  // namespace detail

// A way of rounding, with bits or digits to keep, or the exponent of a step: in the ranges that Python checks.
template <class Scalar>
class Quantizer {
public:
    static_assert(std::numeric_limits<Scalar>::is_iec559);

    Quantizer(Quantization kind, int number) : round_(of(kind, number)) {}

    // Round values into `out`, other memory. `index` is that of the first value in its array. Returns
    // how many valid values keep their bits because rounding would make them missing or let them cross a limit.
    std::size_t round(std::span<const Scalar> in, Scalar* out, std::size_t index, const Kept<Scalar>& kept) const {
        return std::visit([&](const auto& round) { return detail::round_all(in, out, round, index, kept); }, round_);
    }

private:
    using Round = std::variant<detail::BitRound<Scalar>, detail::Granular<Scalar>, detail::BitGroom<Scalar>,
                               detail::Absolute<Scalar>>;

    static Round of(Quantization kind, int number) {
        if (kind == Quantization::bitround) return detail::BitRound<Scalar>(number);
        if (kind == Quantization::granular) return detail::Granular<Scalar>(number);
        if (kind == Quantization::bitgroom) return detail::BitGroom<Scalar>(number);
        return detail::Absolute<Scalar>(number);
    }

    Round round_;
};

// The largest error relative to a value, of two arrays of one size; infinite where NaN or an infinity changed.
template <class Scalar>
double relative_error(std::span<const Scalar> expected, std::span<const Scalar> found) {
    double largest = 0;
    detail::each_block(expected, [&](std::size_t at, std::size_t count) {
        const auto was = expected.subspan(at, count), now = found.subspan(at, count);
        double ratio = detail::largest_ratio(was, now);
        if (!std::isfinite(ratio)) {
            ratio = 0;
            for (std::size_t i = 0; i < count; ++i) ratio = std::max(ratio, detail::relative_distance(was[i], now[i]));
        }
        largest = std::max(largest, ratio);
    });
    return largest;
}

}  // namespace tamis::values
