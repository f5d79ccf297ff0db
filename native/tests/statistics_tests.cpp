// Sums over values against the same in long double, one value after another; and counts in bins.

#include "tamis/values/statistics.hpp"

#include <limits>
#include <memory>
#include <vector>

#include "check.hpp"
#include "random.hpp"
#include "tamis/values/bins.hpp"
#include "tests.hpp"

namespace tamis::tests {

namespace {

using Wide = long double;

template <class Scalar>
Scalar any_number(Random& random) {
    if constexpr (std::is_integral_v<Scalar>) {
        if (random.one_in(4)) return static_cast<Scalar>(random.bits());
        return static_cast<Scalar>(random.below(100));
    } else {
        using Limits = std::numeric_limits<Scalar>;
        if (random.one_in(40))
            return random.pick<Scalar>({Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()});
        if (random.one_in(20)) return random.pick<Scalar>({0, -Scalar{0}, Limits::denorm_min(), Limits::min(), 7});
        return static_cast<Scalar>(280 + std::ldexp(static_cast<double>(random.bits() >> 11), -48));
    }
}

// Values in memory of their exact size.
template <class Scalar>
struct Exactly {
    explicit Exactly(const std::vector<Scalar>& values) : size(values.size()), memory(new Scalar[values.size()]) {
        std::copy(values.begin(), values.end(), memory.get());
    }
    std::span<const Scalar> span() const { return {memory.get(), size}; }

    std::size_t size;
    std::unique_ptr<Scalar[]> memory;
};

bool near(Wide found, Wide expected, Wide scale) {
    return found == expected || std::abs(found - expected) <= Wide{1e-13} * scale;
}

template <class Scalar>
void sums_are_those_of_valid_values(Random& random) {
    const std::vector<Scalar> marks = random.one_in(2) ? std::vector<Scalar>{7, 9} : std::vector<Scalar>{};
    // Sizes of squares beyond the range of doubles, and around 1.
    const int power = std::is_same_v<Scalar, double> ? random.pick<int>({0, 0, 600, -600}) : 0;
    std::vector<Scalar> before(random.below(3000)), after;
    for (Scalar& value : before) {
        value = any_number<Scalar>(random);
        if constexpr (std::is_floating_point_v<Scalar>) value = std::ldexp(value, power);
    }
    if (random.one_in(20)) std::fill(before.begin(), before.end(), Scalar{7});
    after = before;
    for (Scalar& value : after)
        if (random.one_in(2)) {
            if constexpr (std::is_floating_point_v<Scalar>)
                value += std::ldexp(static_cast<Scalar>(random.between(-999, 999)) / 1000, power);
            else
                value = static_cast<Scalar>(value ^ static_cast<Scalar>(random.below(8)));
        }
    const Exactly<Scalar> was(before), now(after);
    const auto found = values::statistics<Scalar>(was.span(), now.span(), marks, true);

    std::vector<std::size_t> valid;
    for (std::size_t i = 0; i < before.size(); ++i) {
        bool is_valid = std::find(marks.begin(), marks.end(), before[i]) == marks.end();
        if constexpr (std::is_floating_point_v<Scalar>) is_valid = is_valid && std::isfinite(before[i]);
        if (is_valid) valid.push_back(i);
    }
    require(found.count == valid.size() && found.moments.count == valid.size(), "all valid values are counted");
    if (valid.empty()) {
        require(found.squares.mantissa == 0 && found.largest == 0, "nothing is known of no values");
        return;
    }
    Scalar low = before[valid[0]], high = low;
    values::Error<Scalar> largest{};
    Wide squares = 0, mean_1 = 0, mean_2 = 0;
    const Wide scale = std::ldexp(Wide{1}, -power);
    for (const std::size_t i : valid) {
        low = std::min(low, before[i]);
        high = std::max(high, before[i]);
        const auto error = values::detail::error_of(before[i], after[i]);
        largest = std::max(largest, error);
        squares += static_cast<Wide>(error) * scale * static_cast<Wide>(error) * scale;
        mean_1 += static_cast<Wide>(before[i]) * scale;
        mean_2 += static_cast<Wide>(after[i]) * scale;
    }
    require(found.low == low && found.high == high, "the range is exact");
    require(found.largest == largest, "the largest error is exact");
    const Wide sum = std::ldexp(static_cast<Wide>(found.squares.mantissa), 2 * (found.squares.exponent - power));
    require(near(sum, squares, squares), "squares are added up as they are");
    if (power != 0) return;  // moments may overflow
    const auto count = static_cast<Wide>(valid.size());
    mean_1 /= count;
    mean_2 /= count;
    Wide square_1 = 0, square_2 = 0, product = 0, size = 0;
    for (const std::size_t i : valid) {
        const Wide one = static_cast<Wide>(before[i]) - mean_1, two = static_cast<Wide>(after[i]) - mean_2;
        square_1 += one * one;
        square_2 += two * two;
        product += one * two;
        size = std::max({size, std::abs(static_cast<Wide>(before[i])), std::abs(static_cast<Wide>(after[i]))});
    }
    // Deviations are rounded relative to the values.
    const Wide rounding = std::sqrt(square_1 * count) * size + square_1 + size * size * count * Wide{1e-13};
    require(near(found.moments.mean[0], mean_1, size) && near(found.moments.mean[1], mean_2, size), "means are kept");
    require(near(found.moments.square[0], square_1, rounding), "squares of deviations are kept");
    const Wide other = rounding + std::sqrt(square_2 * count) * size + square_2;
    require(near(found.moments.square[1], square_2, other), "squares of the other deviations are kept");
    require(near(found.moments.product, product, other), "products of deviations are kept");

    const auto alone = values::statistics<Scalar>(was.span(), was.span(), marks, true);
    require(alone.count == found.count && alone.low == low && alone.high == high && alone.largest == 0 &&
                alone.squares.mantissa == 0 && alone.moments.square[0] == alone.moments.product,
            "an array is like itself");
}

void a_value_that_became_nan_has_an_infinite_error() {
    const std::vector<float> before{1, 2}, after{1, std::numeric_limits<float>::quiet_NaN()};
    const auto found = values::statistics<float>(before, after, {}, true);
    require(std::isinf(found.largest) && std::isinf(found.squares.mantissa), "NaN is no small error");
}

template <class Scalar>
void errors_are_those_of_each_value(Random& random) {
    // Blocks with and without zeros and subnormal numbers, and another value that means 0.
    const double zero = random.one_in(3) ? -273.15 : 0;
    std::vector<Scalar> before(1 + random.below(3000)), after;
    const bool plain = random.one_in(2);
    for (Scalar& value : before) {
        value = plain ? static_cast<Scalar>(280 + random.between(-99, 99)) : any_number<Scalar>(random);
        if (!std::isfinite(value)) value = static_cast<Scalar>(zero);
    }
    after = before;
    for (Scalar& value : after)
        if (random.one_in(3)) value += static_cast<Scalar>(random.between(-999, 999)) / 1000;
    const Exactly<Scalar> was(before), now(after);
    const auto found = values::valid_errors<Scalar>(was.span(), now.span(), zero);

    std::size_t worst = 0, zeros_changed = 0;
    double largest = 0, relative = 0;
    Wide squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const double error = std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i]));
        if (error > largest) worst = i;
        largest = std::max(largest, error);
        squares += static_cast<Wide>(error) * static_cast<Wide>(error);
        if (before[i] == static_cast<Scalar>(zero))
            zeros_changed += error != 0;
        else
            relative = std::max(relative, error / std::abs(static_cast<double>(before[i]) - zero));
    }
    require(found.largest == largest && found.worst == worst, "the first of the largest errors is found");
    require(found.relative == relative && found.zeros_changed == zeros_changed, "zeros have no relative error");
    require(found.stored_relative == values::relative_error<Scalar>(was.span(), now.span()), "roundings bound it");
    const Wide sum = std::ldexp(static_cast<Wide>(found.squares.mantissa), 2 * found.squares.exponent);
    require(near(sum, squares, squares), "squares are added up as they are");
}

template <class Scalar>
void coarser_bins_hold_finer_ones(Random& random) {
    using Bits = values::detail::Bits<Scalar>;
    const auto one = std::bit_cast<Scalar>(static_cast<Bits>(random.bits()));
    const auto two = std::bit_cast<Scalar>(static_cast<Bits>(random.bits()));
    if (!std::isfinite(one) || !std::isfinite(two)) return;
    const bool less = one < two;
    require(one == two || (values::ordered(one) < values::ordered(two)) == less, "keys have the order of values");
    const int fine = random.between(-900, 900), coarse = fine + random.between(0, 60);
    const auto small = values::EqualBins(fine)(one), large = values::EqualBins(coarse)(one);
    if (!(std::abs(std::ldexp(static_cast<Wide>(one), -fine)) < 0x1p62L)) {
        require(small == std::numeric_limits<std::int64_t>::max(), "large values have a bin of their own");
        return;
    }
    require(static_cast<Wide>(small) == std::floor(std::ldexp(static_cast<Wide>(one), -fine)), "bins have one width");
    require(small >> (coarse - fine) == large, "coarser bins hold finer ones");
    std::vector<std::int64_t> counts(2);
    const bool inside =
        values::count_in_bins<Scalar>(std::vector<Scalar>{one}, values::EqualBins(fine), small - 1, counts);
    require(inside && counts[0] == 0 && counts[1] == 1, "a value counts in its bin");
    require(!values::count_in_bins<Scalar>(std::vector<Scalar>{one}, values::EqualBins(fine), small + 1, counts),
            "a value below all bins is told");
}

}  // namespace

void test_statistics() {
    a_value_that_became_nan_has_an_infinite_error();
    for (std::uint64_t number = 0; number < 400; ++number) {
        place = {"statistics", number};
        Random random(11, number);
        sums_are_those_of_valid_values<float>(random);
        sums_are_those_of_valid_values<double>(random);
        sums_are_those_of_valid_values<std::int16_t>(random);
        sums_are_those_of_valid_values<std::int64_t>(random);
        sums_are_those_of_valid_values<std::uint64_t>(random);
        errors_are_those_of_each_value<float>(random);
        errors_are_those_of_each_value<double>(random);
        for (int times = 0; times < 50; ++times) {
            coarser_bins_hold_finer_ones<float>(random);
            coarser_bins_hold_finer_ones<double>(random);
        }
    }
}

}  // namespace tamis::tests
