// Fuzzes what looks at values for plans: the ladder of tolerances, counts of bits, roundings and windows of similarity,
// with shapes, flags and values of any kind in memory of exactly their size.
//
//   tamis_values_fuzz [rounds = 200000] [seed = 1] [first round = 0]

#include <cmath>
#include <limits>

#include "cases.hpp"
#include "tamis/values/bit_pairs.hpp"
#include "tamis/values/quantize.hpp"
#include "tamis/values/similarity.hpp"
#include "tamis/zfp/ladder.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

template <class Scalar>
constexpr Type type_of = zfp::Traits<Scalar>::type;

template <class Scalar>
using Word = typename zfp::Traits<Scalar>::UInt;

template <class Scalar>
std::vector<Scalar> random_floats(Random& random, std::size_t count) {
    const Values kind = random_values(random);
    std::vector<Scalar> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = std::bit_cast<Scalar>(static_cast<Word<Scalar>>(value_bits(random, type_of<Scalar>, kind, i)));
    return values;
}

// Flags of so many values; null for all.
std::unique_ptr<bool[]> random_flags(Random& random, std::size_t count) {
    if (random.one_in(2)) return nullptr;
    auto flags = std::make_unique<bool[]>(count);
    const std::size_t share = 1 + random.below(5);
    for (std::size_t i = 0; i < count; ++i) flags[i] = !random.one_in(share);
    return flags;
}

template <class Scalar>
std::size_t first_not_finite(const std::vector<Scalar>& values) {
    std::size_t at = 0;
    while (at < values.size() && std::isfinite(values[at])) ++at;
    return at;
}

// Each rung has the bits that the encoder writes, and the errors of what the decoder reads.
template <class Scalar>
void climb(Random& random) {
    const unsigned rank = 1 + static_cast<unsigned>(random.below(4));
    const Layout layout = Layout::contiguous(rank, random_extent(random, rank));
    const std::vector<Scalar> values = random_floats<Scalar>(random, value_count(layout));
    const auto valid = random_flags(random, values.size());
    // Tolerances from coarse to fine, or precisions.
    std::vector<Params> modes(1 + random.below(random.one_in(9) ? 90 : 9));
    const bool has_tolerances = random.one_in(2);
    const int exponent = random.one_in(3) ? random.between(-900, 1023) : random.between(-60, 60);
    for (unsigned i = 0; i < modes.size(); ++i)
        if (has_tolerances)
            modes[i].minexp = std::max(exponent - static_cast<int>(i), zfp::min_exp);
        else
            modes[i].maxprec = std::min(i + 1, zfp::max_prec);
    std::vector<zfp::Rung> rungs(modes.size());
    const Status status = zfp::add_to_ladder(type_of<Scalar>, values.data(), valid.get(), layout, modes, rungs);
    const std::size_t refused = first_not_finite(values);
    require(static_cast<bool>(status) == (refused == values.size()), "values that are not finite are refused");
    require(status || (status.code == Code::non_finite && status.where == refused), "the first of them is named");
    if (!status) return;
    const std::size_t at = random.below(rungs.size());
    const Params params = modes[at];
    const Exact out(zfp::encode_capacity(type_of<Scalar>, layout, params, 0));
    std::size_t end = 0;
    kernel().encode(type_of<Scalar>, values.data(), layout, params, out.data(), 0, end);
    require(rungs[at].nbits == end, "a rung has the bits of its stream");
    std::vector<Scalar> after(values.size());
    kernel().decode(type_of<Scalar>, after.data(), layout, params, out.span(), 0, end);
    double error = 0;
    long double squares = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (valid && !valid[i]) continue;
        const double distance = std::abs(static_cast<double>(values[i]) - static_cast<double>(after[i]));
        error = std::max(error, distance);
        squares += static_cast<long double>(distance * distance);
    }
    require(rungs[at].error == error, "a rung has the largest error of what is read");
    const double sum = static_cast<double>(squares);
    require(rungs[at].squares == sum || std::abs(rungs[at].squares - sum) <= sum * 1e-12 + 1e-300,
            "a rung has the sum of the squares");
    for (std::size_t i = 1; i < rungs.size(); ++i)
        require(rungs[i - 1].nbits <= rungs[i].nbits, "fewer planes take no more bits");
}

template <class Scalar>
void count_bits(Random& random) {
    const std::size_t outer = 1 + random.below(4), extent = 1 + random.below(40), inner = 1 + random.below(30);
    const std::vector<Scalar> values = random_floats<Scalar>(random, outer * extent * inner);
    const auto valid = random_flags(random, values.size());
    std::vector<Word<Scalar>> words(values.size());
    std::memcpy(words.data(), values.data(), values.size() * sizeof(Scalar));
    const auto all = values::bit_pairs(words.data(), valid.get(), outer, extent, inner);
    auto summed = values::bit_pairs(words.data(), valid.get(), 1, extent, inner);
    for (std::size_t i = 1; i < outer; ++i) {
        const std::size_t at = i * extent * inner;
        const auto part = values::bit_pairs(words.data() + at, valid ? valid.get() + at : nullptr, 1, extent, inner);
        summed.pair_count += part.pair_count;
        for (std::size_t bit = 0; bit < part.first.size(); ++bit) {
            summed.first[bit] += part.first[bit];
            summed.second[bit] += part.second[bit];
            summed.both[bit] += part.both[bit];
        }
    }
    require(all.pair_count == summed.pair_count && all.first == summed.first && all.second == summed.second &&
                all.both == summed.both,
            "counts of parts add up to those of the whole");
    require(valid || all.pair_count == outer * (extent - 1) * inner, "each value has a neighbour but the last");
    for (std::size_t bit = 0; bit < all.first.size(); ++bit) {
        require(all.both[bit] <= std::min(all.first[bit], all.second[bit]), "bits of both are bits of each");
        require(all.first[bit] + all.second[bit] <= all.pair_count + all.both[bit], "a pair counts once");
    }
}

template <class Scalar>
void round_values(Random& random) {
    using values::Quantization;
    const auto kind = static_cast<Quantization>(random.below(4));
    const int digits = std::numeric_limits<Scalar>::digits - 1;
    const int number = kind == Quantization::absolute   ? random.between(sizeof(Scalar) == 4 ? -149 : -1074, 100)
                       : kind == Quantization::bitround ? random.between(1, digits)
                                                        : random.between(1, sizeof(Scalar) == 4 ? 6 : 15);
    const std::vector<Scalar> in = random_floats<Scalar>(random, random.below(random.one_in(9) ? 3000 : 40));
    std::vector<Scalar> marks, out(in.size()), again(in.size());
    if (!in.empty() && random.one_in(2)) marks.push_back(random.pick(in));
    std::erase_if(marks, [](Scalar mark) { return !std::isfinite(mark); });
    values::Kept<Scalar> kept{marks};
    if (random.one_in(3)) kept.low = static_cast<Scalar>(random.between(-9, 9));
    if (random.one_in(3)) kept.high = static_cast<Scalar>(random.between(9, 999));
    const std::size_t first = random.below(3);
    const values::Quantizer<Scalar> quantizer(kind, number);
    const std::size_t held = quantizer.round(in, out.data(), first, kept);
    require(held <= in.size(), "values that are held are values");
    for (std::size_t i = 0; i < in.size(); ++i) {
        const Scalar was = in[i], now = out[i];
        const bool same = std::memcmp(&was, &now, sizeof was) == 0;
        const auto is_mark = [&](Scalar value) { return std::find(marks.begin(), marks.end(), value) != marks.end(); };
        require(same || (std::isfinite(was) && !is_mark(was) && was != 0), "missing values and zeros stay");
        require(same || (std::isfinite(now) && !is_mark(now)), "no value becomes missing");
        require((was < kept.low) == (now < kept.low) && (was > kept.high) == (now > kept.high), "limits are kept");
        require(std::signbit(was) == std::signbit(now) || now == 0, "signs are kept");
        if (kind == Quantization::absolute && !same)
            require(
                std::abs(static_cast<long double>(was) - static_cast<long double>(now)) <= std::ldexp(1.0L, number - 1),
                "no value moves by more than half of a step");
    }
    if (kind == Quantization::bitround)
        require(values::relative_error<Scalar>(in, out) <= std::ldexp(1.0, -number - 1), "bits bound relative errors");
    if (kind == Quantization::granular) return;  // whose rounded values may have other digits
    quantizer.round(out, again.data(), first, kept);
    require(out.empty() || std::memcmp(again.data(), out.data(), out.size() * sizeof(Scalar)) == 0,
            "rounded values stay as they are");
}

void compare_windows(Random& random) {
    const std::size_t rows = 1 + random.below(30), columns = 1 + random.below(30);
    const bool plain = random.one_in(2);  // as callers have it: values of 0 to 1
    const auto field = [&] {
        std::vector<double> values = random_floats<double>(random, rows * columns);
        for (double& value : values)
            if (plain) value = static_cast<double>(random.below(256)) / 255;
        return values;
    };
    std::vector<double> one = field(), two = field();
    const auto present = random_flags(random, one.size());
    bool has_window = false;
    for (std::size_t i = 0; i < one.size(); ++i) {
        const std::size_t row = i / columns, column = i % columns;
        if (present && !present[i])
            one[i] = two[i] = 0;
        else
            has_window |= row >= 5 && column >= 5 && row + 5 < rows && column + 5 < columns;
    }
    const auto likeness = [&](const std::vector<double>& first, const std::vector<double>& second) {
        return values::Windows(first.data(), second.data(), present.get(), rows, columns).mean_similarity();
    };
    const double there = likeness(one, two), back = likeness(two, one);
    require(has_window || std::isnan(there), "there is no mean without a window");
    if (!plain || !has_window) return;
    require(there >= -1 - 1e-9 && there <= 1 + 1e-9, "similarity is between -1 and 1");
    require(std::abs(there - back) <= 1e-9, "one is as similar to the other as the other to the one");
    require(std::abs(likeness(one, one) - 1) <= 1e-9, "a field is like itself");
}

template <class Scalar>
void try_one(Random& random) {
    switch (random.below(4)) {
        case 0:
            return climb<Scalar>(random);
        case 1:
            return count_bits<Scalar>(random);
        case 2:
            return round_values<Scalar>(random);
        default:
            return compare_windows(random);
    }
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [rounds, seed, first] = fuzz_arguments(count, arguments);
    for (std::uint64_t i = first; i < first + rounds; ++i) {
        Random random(seed, i);
        place = {"values", i};
        random.one_in(2) ? try_one<float>(random) : try_one<double>(random);
    }
    std::printf("%llu rounds of seed %llu: nothing found\n", static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(seed));
}
