// The sufficient test of a proof, under values that come as close to its edge as chance brings them, and proofs of
// streams that keep their tolerance or do not.

#include "cases.hpp"
#include "tamis/zfp/proof.hpp"
#include "tests.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

// A chunk, its stream, and what that is read as.
template <class Scalar>
struct RoundTrip {
    Layout layout;
    Params params;
    std::vector<Scalar> before, after;
    std::vector<std::uint8_t> stream;
    int exponent = 0;

    // False where the codec refuses a value.
    bool code() {
        constexpr Type type = zfp::Traits<Scalar>::type;
        const Exact out(zfp::encode_capacity(type, layout, params, 0));
        std::size_t end = 0;
        const Status status = kernel().encode(type, before.data(), layout, params, out.data(), 0, end);
        if (!status) return false;
        exponent = status.exponent;
        stream.assign(out.data(), out.data() + (end + 7) / 8);
        after.assign(before.size(), 0);
        return static_cast<bool>(kernel().decode(type, after.data(), layout, params, stream, 0, end));
    }
    // The largest error, in tolerances.
    long double error() const {
        long double largest = 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
            const auto change = std::abs(static_cast<long double>(before[i]) - static_cast<long double>(after[i]));
            largest = std::isnan(change) ? std::numeric_limits<long double>::infinity() : std::max(largest, change);
        }
        return std::ldexp(largest, -params.minexp);
    }
    zfp::Verdict prove(std::optional<std::uint64_t> fill = std::nullopt) const {
        constexpr Type type = zfp::Traits<Scalar>::type;
        return zfp::prove(kernel(), type, before.data(), layout, params, fill, exponent, stream);
    }
};

template <class Scalar>
RoundTrip<Scalar> round_trip(unsigned rank, int minexp) {
    constexpr std::size_t extents[] = {16, 8, 8, 4};
    std::array<std::size_t, zfp::max_rank> extent{1, 1, 1, 1};
    std::fill_n(extent.begin(), rank, extents[rank - 1]);
    RoundTrip<Scalar> trip;
    trip.layout = Layout::contiguous(rank, extent);
    trip.params.minexp = minexp;
    trip.before.resize(value_count(trip.layout));
    return trip;
}

// Values below 2^exponent: spread evenly, at the edge, or of every size.
template <class Scalar>
Scalar value_below(Random& random, int exponent, std::size_t kind) {
    const double sign = random.one_in(2) ? -1 : 1;
    double size = std::ldexp(static_cast<double>(random.bits() >> 11), -53);
    if (kind == 1) size = 1 - size * 0x1p-20;
    if (kind == 2) size = std::ldexp(size, -random.between(0, 60));
    if (kind == 3) size = random.one_in(4) ? size * 0x1p-22 : 1 - 0x1p-24;
    const auto value = static_cast<Scalar>(std::ldexp(sign * size, exponent));
    [[maybe_unused]] const auto most = static_cast<Scalar>(std::ldexp(1.0, exponent));
    if constexpr (std::is_floating_point_v<Scalar>)
        return std::abs(value) < most ? value : std::nextafter(value, Scalar{0});
    else
        return value;
}

template <class Scalar>
void floats_that_pass_keep_their_tolerance(unsigned rank) {
    constexpr bool wide = sizeof(Scalar) == 8;
    const int planes = zfp::detail::sure_planes[wide][rank - 1], least = zfp::detail::least_exponents[wide];
    const int most = zfp::detail::most_exponents[wide];
    unsigned doubted = 0;
    for (unsigned round = 0; round < 1500; ++round) {
        place = {wide ? "float64 at the edge" : "float32 at the edge", round};
        Random random(rank + 10 * wide, round);
        // One more than may pass: what the test lets through, and what it does not.
        const int exponent = random.one_in(4)   ? least + planes + random.between(0, 3)
                             : random.one_in(4) ? most - random.between(-2, 3)
                                                : random.between(-30, 30);
        const int minexp = std::max(exponent - planes - random.between(-6, 2), least - 2);
        RoundTrip<Scalar> trip = round_trip<Scalar>(rank, minexp);
        const std::size_t kind = random.below(5);
        // Blocks of tiny values too, which are scaled by infinity.
        const int low = random.one_in(4) ? least - random.between(0, 30) : exponent;
        for (Scalar& value : trip.before) value = value_below<Scalar>(random, random.one_in(3) ? low : exponent, kind);
        require(trip.code(), "finite values are coded");
        const bool sure = zfp::keeps_for_sure(zfp::Traits<Scalar>::type, rank, minexp, trip.exponent);
        require(!sure || trip.error() <= 1, "an array that needs no comparison keeps its tolerance");
        require((trip.error() <= 1) == static_cast<bool>(trip.prove().status), "a proof says whether it was kept");
        doubted += !sure;
    }
    require(doubted > 100 && doubted < 1400, "both sides of the edge were tried");
}

template <class Scalar>
void integers_that_pass_keep_their_tolerance(unsigned rank) {
    unsigned broken = 0;
    for (unsigned round = 0; round < 600; ++round) {
        place = {"integers", round};
        Random random(100 + rank, round);
        RoundTrip<Scalar> trip = round_trip<Scalar>(rank, random.between(-1, 10));
        const int exponent = random.between(1, 8 * sizeof(Scalar) - 2);
        const std::size_t kind = random.below(4);
        for (Scalar& value : trip.before) value = value_below<Scalar>(random, exponent, kind);
        if (!trip.code()) continue;
        const bool sure = zfp::keeps_for_sure(zfp::Traits<Scalar>::type, rank, trip.params.minexp, 0);
        require(!sure || trip.error() <= 1, "integers that need no comparison keep their tolerance");
        require((trip.error() <= 1) == static_cast<bool>(trip.prove().status), "a proof says whether it was kept");
        broken += trip.error() > 1;
    }
    require(broken > 20, "some are not kept");
}

template <class Scalar>
std::uint64_t bits_as_stored(Scalar value) {
    return std::bit_cast<typename zfp::Traits<Scalar>::UInt>(value);
}

template <class Scalar>
void a_fill_value_of_ordinary_size_is_told_apart(unsigned rank) {
    unsigned kept = 0, lost = 0;
    for (unsigned round = 0; round < 600; ++round) {
        place = {"fill value", round};
        Random random(200 + rank, round);
        RoundTrip<Scalar> trip = round_trip<Scalar>(rank, random.between(0, 3));
        const auto fill = static_cast<Scalar>(random.one_in(3) ? -999 : random.one_in(2) ? 5 : -99);
        for (Scalar& value : trip.before) value = static_cast<Scalar>(random.between(-100, 100));
        if (random.one_in(2)) trip.before[random.below(trip.before.size())] = fill;
        if (random.one_in(4)) std::fill(trip.before.begin(), trip.before.end(), fill);
        require(trip.code(), "small values are coded");
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < trip.before.size(); ++i)
            wrong += (trip.before[i] == fill) != (trip.after[i] == fill);
        const zfp::Verdict verdict = trip.prove(bits_as_stored(fill));
        require(static_cast<bool>(verdict.status) == (wrong == 0 && trip.error() <= 1), "a proof sees each fill value");
        if (verdict.status.code == zfp::Code::fill_value)
            require((verdict.was == static_cast<double>(fill)) != (verdict.now == static_cast<double>(fill)),
                    "the value that is named is the fill value before or after");
        ++(verdict.status ? kept : lost);
    }
    require(kept > 50 && lost > 50, "some are kept, and some are not");
}

// Parts of blocks, and fewer blocks than a kernel takes at once, too.
template <class Scalar>
void encoder_tells_the_exponent_of_the_largest_value(unsigned rank) {
    for (unsigned round = 0; round < 300; ++round) {
        place = {"exponents", round};
        Random random(300 + rank, round);
        RoundTrip<Scalar> trip{Layout::contiguous(rank, random_extent(random, rank)), {}, {}, {}, {}};
        trip.params.minexp = random.between(-20, 20);
        trip.before.resize(value_count(trip.layout));
        for (Scalar& value : trip.before) value = value_below<Scalar>(random, random.between(-40, 40), random.below(3));
        if (random.one_in(3)) trip.before.assign(trip.before.size(), 0);
        double largest = 0;
        for (const Scalar value : trip.before) largest = std::max(largest, std::abs(static_cast<double>(value)));
        int exponent = 0;
        std::frexp(largest, &exponent);
        require(trip.code(), "finite values are coded");
        require(largest == 0 ? trip.exponent < -120 : trip.exponent == exponent, "the exponent of the largest value");
    }
}

void care_is_taken_of_what_a_tolerance_can_change() {
    place = {"care", 0};
    const auto narrow = [](float value, int minexp) {
        return zfp::needs_care(Type::float32, minexp, bits_as_stored(value));
    };
    require(narrow(-999.0f, -1) && narrow(0.0f, -1) && narrow(-99.0f, -10), "values of like size");
    require(!narrow(9.96921e36f, 10) && !narrow(1e20f, 10), "no neighbour of a huge value is within the tolerance");
    require(narrow(0x1p24f, 0) && !narrow(0x1p25f, 0), "the nearer neighbour of a power of two decides");
    require(!narrow(NAN, 10) && !narrow(INFINITY, 10), "what lossy modes refuse");
    require(zfp::needs_care(Type::int32, 0, bits_as_stored(-999)), "integers move by units");
    require(!zfp::needs_care(Type::int32, 0, bits_as_stored(std::numeric_limits<int>::min() + 1)), "netCDF's own");
    require(zfp::needs_care(Type::int32, 0, bits_as_stored((1 << 30) + 200)), "which a value may reach");
    require(!zfp::needs_care(Type::int64, 8, bits_as_stored(std::int64_t{1} << 63)), "the lowest integer");
}

void a_verdict_names_the_first_value() {
    place = {"verdict", 0};
    RoundTrip<float> trip = round_trip<float>(1, -4);
    for (float& value : trip.before) value = 300.3f;
    trip.before[9] = 1e20f;
    require(trip.code(), "finite values are coded");
    const zfp::Verdict verdict = trip.prove();
    std::size_t first = 0;
    while (std::abs(trip.before[first] - trip.after[first]) <= 0x1p-4f) ++first;
    require(verdict.status.code == zfp::Code::beyond_tolerance && verdict.status.where == first,
            "the first in C order");
    require(verdict.was == trip.before[first] && verdict.now == trip.after[first], "with both of its values");
}

}  // namespace

void tamis::tests::test_proofs() {
    for (unsigned rank = 1; rank <= zfp::max_rank; ++rank) {
        encoder_tells_the_exponent_of_the_largest_value<float>(rank);
        encoder_tells_the_exponent_of_the_largest_value<double>(rank);
        floats_that_pass_keep_their_tolerance<float>(rank);
        floats_that_pass_keep_their_tolerance<double>(rank);
        integers_that_pass_keep_their_tolerance<std::int32_t>(rank);
        integers_that_pass_keep_their_tolerance<std::int64_t>(rank);
        a_fill_value_of_ordinary_size_is_told_apart<float>(rank);
        a_fill_value_of_ordinary_size_is_told_apart<double>(rank);
        a_fill_value_of_ordinary_size_is_told_apart<std::int32_t>(rank);
    }
    care_is_taken_of_what_a_tolerance_can_change();
    a_verdict_names_the_first_value();
}
