// Promises of the rounding that need memory of exact sizes, or the logarithm of each value to compare with.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "check.hpp"
#include "random.hpp"
#include "tamis/values/bit_pairs.hpp"
#include "tamis/values/quantize.hpp"
#include "tamis/values/similarity.hpp"
#include "tests.hpp"

namespace tamis::tests {

namespace {

using values::Quantization;

template <class Scalar>
using Word = values::detail::Word<Scalar>;

template <class Scalar>
bool is_absent(Scalar value, const std::vector<Scalar>& marks) {
    return values::detail::is_missing<Scalar>(value, marks);
}

// What a value becomes, netCDF's way for its kinds, where tamis does not leave it as it is instead.
template <class Scalar>
Scalar plainly_rounded(Quantization kind, int number, Scalar value, std::size_t index) {
    namespace detail = values::detail;
    const auto word = std::bit_cast<Word<Scalar>>(value);
    if (kind == Quantization::bitround) return std::bit_cast<Scalar>(detail::BitRound<Scalar>(number)(word, 0));
    if (kind == Quantization::granular) {
        if (!std::isfinite(value) || value == 0) return value;
        const int count = detail::granular_cleared(value, number);
        return std::bit_cast<Scalar>(detail::rounded<Scalar>(word, detail::ones<Scalar>(count)));
    }
    if (kind == Quantization::absolute) {
        const long double steps = std::nearbyint(std::ldexp(static_cast<long double>(value), -number));
        const bool is_coarse = !(std::abs(value) < std::ldexp(Scalar{1}, number + detail::fraction_nbits<Scalar>));
        if (is_coarse || value == 0) return value;
        return steps == 0 ? Scalar{0} : static_cast<Scalar>(std::ldexp(steps, number));
    }
    const auto cleared = detail::BitGroom<Scalar>(number).cleared;
    if (value == 0) return value;
    return std::bit_cast<Scalar>(index % 2 == 0 ? static_cast<Word<Scalar>>(word & ~cleared)
                                                : static_cast<Word<Scalar>>(word | cleared));
}

template <class Scalar>
Scalar any_value(Random& random) {
    if (random.one_in(9)) return static_cast<Scalar>(random.between(-9, 9));
    // Beside a power of ten, where the number of digits changes.
    if (random.one_in(3)) {
        const auto ten = static_cast<Scalar>(std::pow(10.0, random.between(-30, 30)));
        return std::bit_cast<Scalar>(static_cast<Word<Scalar>>(std::bit_cast<Word<Scalar>>(ten) + random.below(9) - 4));
    }
    if (random.one_in(2))
        return static_cast<Scalar>(std::ldexp(random.between(-99999, 99999), random.between(-40, 40)));
    return std::bit_cast<Scalar>(static_cast<Word<Scalar>>(random.bits()));
}

template <class Scalar>
void rounding_is_plain_where_it_does_no_harm() {
    Random random(sizeof(Scalar));
    for (unsigned round = 0; round < 800; ++round) {
        place = {"round of rounding", round};
        const auto kind = static_cast<Quantization>(random.below(4));
        const int most =
            kind == Quantization::bitround ? std::numeric_limits<Scalar>::digits - 1 : (sizeof(Scalar) == 4 ? 6 : 15);
        const int number = kind == Quantization::absolute ? random.between(-149, 100) : random.between(1, most);
        const std::size_t size = random.below(random.one_in(9) ? 3000 : 40), first = random.below(2);
        std::vector<Scalar> in(size), marks(random.below(3));
        for (Scalar& value : in) value = any_value<Scalar>(random);
        for (Scalar& mark : marks) mark = size != 0 && random.one_in(2) ? in[random.below(size)] : Scalar{5};
        std::erase_if(marks, [](Scalar mark) { return !std::isfinite(mark); });
        values::Kept<Scalar> kept{marks};
        if (random.one_in(2)) kept.low = any_value<Scalar>(random);
        if (std::isnan(kept.low)) kept.low = 0;
        if (random.one_in(2)) kept.high = 1000;

        std::vector<Scalar> out(size);
        const values::Quantizer<Scalar> quantizer(kind, number);
        const std::size_t held = quantizer.round(in, out.data(), first, kept);
        std::size_t expected_held = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const Scalar was = in[i], plain = plainly_rounded(kind, number, was, first + i);
            const bool absent = is_absent(was, marks);
            const bool harmed = is_absent(plain, marks) || (was < kept.low) != (plain < kept.low) ||
                                (was > kept.high) != (plain > kept.high);
            expected_held += !absent && harmed && was != plain;
            const Scalar expected = absent || harmed ? was : plain;
            require(std::memcmp(&expected, &out[i], sizeof expected) == 0, "rounded, or left alone");
        }
        require(held == expected_held, "those left alone are counted");
        double largest = 0;
        for (std::size_t i = 0; i < size; ++i)
            largest = std::max(largest, values::detail::relative_distance(in[i], out[i]));
        require(values::relative_error<Scalar>(in, out) == largest, "the relative error is that of one value");
    }
}

template <class Word>
void bits_of_neighbours_are_counted() {
    for (unsigned number = 0; number < 60; ++number) {
        Random random(11, number);
        const std::size_t outer = random.below(4) + 1, extent = random.below(40) + 1, inner = random.below(30) + 1;
        std::vector<Word> words(outer * extent * inner);
        for (Word& word : words) word = static_cast<Word>(random.bits());
        const bool all = random.one_in(2);
        const auto valid = std::make_unique<bool[]>(words.size());
        for (std::size_t i = 0; i < words.size(); ++i) valid[i] = all || !random.one_in(4);

        typename values::BitPairs<Word>::Result expected{};
        for (std::size_t i = 0; i < words.size(); ++i) {
            const std::size_t next = i + inner;
            if (i / inner % extent + 1 == extent || !valid[i] || !valid[next]) continue;
            const Word first = values::with_signed_exponent(words[i]),
                       second = values::with_signed_exponent(words[next]);
            ++expected.pair_count;
            for (std::size_t bit = 0; bit < 8 * sizeof(Word); ++bit) {
                expected.first[bit] += first >> bit & 1;
                expected.second[bit] += second >> bit & 1;
                expected.both[bit] += (first & second) >> bit & 1;
            }
        }
        const auto found = values::bit_pairs(words.data(), all ? nullptr : valid.get(), outer, extent, inner);
        require(found.pair_count == expected.pair_count && found.first == expected.first &&
                    found.second == expected.second && found.both == expected.both,
                "each bit of each pair is counted");
    }
}

// Fields of any shape: equal ones are alike, others less, and nothing else is read.
void windows_of_fields_are_compared() {
    for (unsigned number = 0; number < 40; ++number) {
        Random random(12, number);
        const std::size_t rows = random.below(30) + 1, columns = random.below(30) + 1;
        std::vector<double> first(rows * columns), second(first.size());
        const auto present = std::make_unique<bool[]>(first.size());
        bool inside = false;
        for (std::size_t i = 0; i < first.size(); ++i) {
            present[i] = !random.one_in(3);
            first[i] = present[i] ? static_cast<double>(random.below(256)) / 255 : 0;
            second[i] = present[i] ? static_cast<double>(random.below(256)) / 255 : 0;
            const std::size_t row = i / columns, column = i % columns;
            inside |= present[i] && row >= 5 && column >= 5 && row + 5 < rows && column + 5 < columns;
        }
        const auto likeness = [&](const std::vector<double>& other) {
            return values::Windows(first.data(), other.data(), present.get(), rows, columns).mean_similarity();
        };
        require(std::isnan(likeness(first)) == !inside, "there is a mean if there is a window");
        if (!inside) continue;
        require(std::abs(likeness(first) - 1) < 1e-9, "a field is like itself");
        require(likeness(second) < 1, "others are less alike");
    }
}

// Fields of any values: levels are multiples of 1/255 from 0 to 1, nearest to where a value is in the range.
template <class T>
void fields_have_levels() {
    for (unsigned number = 0; number < 40; ++number) {
        Random random(13, number);
        std::vector<T> first(random.below(100) + 1), second(first.size());
        const auto present = std::make_unique<bool[]>(first.size());
        const T scale = std::ldexp(T(1), static_cast<int>(random.below(60)) - 30), offset = random.one_in(2) ? 300 : 0;
        for (std::size_t i = 0; i < first.size(); ++i) {
            present[i] = i == 0 || !random.one_in(3);
            for (auto* field : {&first, &second})
                (*field)[i] = present[i] ? offset + scale * static_cast<T>(random.below(1000))
                                         : std::numeric_limits<T>::quiet_NaN();
        }
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (std::size_t i = 0; i < first.size(); ++i)
            for (const double value : {first[i], second[i]})
                if (present[i]) low = std::min(low, value), high = std::max(high, value);
        const values::Levels levels(first.data(), second.data(), present.get(), first.size());
        std::vector<double> scaled(first.size());
        levels.copy(0, 0, scaled);
        for (std::size_t i = 0; i < first.size(); ++i) {
            const double level = 255 * scaled[i], place = 255 * (first[i] - low) / (high - low);
            require(present[i] ? std::abs(level - std::nearbyint(level)) < 1e-9 && level > -1e-9 && level < 255.001
                               : level == 0,
                    "a level is one of 256, and 0 for a missing value");
            if (present[i] && high > low) require(std::abs(level - place) < 0.5 + 1e-9, "a level is the nearest one");
        }
    }
}

}  // namespace

void test_rounding() {
    windows_of_fields_are_compared();
    fields_have_levels<float>();
    fields_have_levels<double>();
    bits_of_neighbours_are_counted<std::uint32_t>();
    bits_of_neighbours_are_counted<std::uint64_t>();
    rounding_is_plain_where_it_does_no_harm<float>();
    rounding_is_plain_where_it_does_no_harm<double>();
}

}  // namespace tamis::tests
