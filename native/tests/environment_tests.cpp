// The floating-point settings of the host program: they change nothing, and nothing changes them.

#include "cases.hpp"
#include "environment.hpp"
#include "tests.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

const zfp::Kernel& kernel = tests::kernel();

// Blocks whose coding needs what a host may have switched off: subnormal values, scales and results, and sums of more
// bits than a mantissa has.
Array delicate_array(Type type, Values kind) {
    Random random(static_cast<std::uint64_t>(type));
    Array array(type, Layout::contiguous(2, {23, 10, 1, 1}));
    const bool wide = type == Type::float64;
    const unsigned mantissa = wide ? 52 : 23, width = wide ? 64 : 32;
    for_each_offset(array.layout(), [&](std::ptrdiff_t offset) {
        std::uint64_t bits = random.bits() >> (64 - width);
        // The largest exponents of these blocks are such that the subnormal values still count.
        const std::uint64_t field = kind == Values::tiny ? random.below(wide ? 62 : 30) : (wide ? 1000 : 120);
        bits = (bits & ~(((std::uint64_t{1} << (width - 1 - mantissa)) - 1) << mantissa)) | field << mantissa;
        array.set(offset, bits);
    });
    return array;
}

struct Coded {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> values;

    bool operator==(const Coded&) const = default;
};

Coded coded(const Array& array, const Params& params, const HostSettings& settings) {
    const Layout& layout = array.layout();
    const Exact out(zfp::encode_capacity(array.type(), layout, params, 0));
    Array back(array.type(), layout);
    std::size_t end = 0;
    Status encoded, decoded;
    require(settings_survive(
                settings,
                [&] { encoded = kernel.encode(array.type(), array.origin(), layout, params, out.data(), 0, end); }),
            "encode gives the host its settings back");
    const std::size_t nbytes = (end + 7) / 8;
    require(settings_survive(settings,
                             [&] {
                                 const std::span<const std::uint8_t> in(out.data(), nbytes);
                                 decoded = kernel.decode(array.type(), back.origin(), layout, params, in, 0, end);
                             }),
            "decode gives the host its settings back");
    require(encoded && decoded, "the array is coded");
    return {{out.data(), out.data() + nbytes}, back.values()};
}

}  // namespace

void tamis::tests::test_host_settings() {
    for (const HostSettings& settings : host_settings()) {
        place = {settings.name, 0};
        for (const Type type : {Type::float32, Type::float64})
            for (const Values kind : {Values::tiny, Values::any_bits})
                for (const Params& params : {zfp::reversible_params(), Params{}, Params{1, 4000, 64, -1060},
                                             Params{1, 300, 30, zfp::min_exp}}) {
                    const Array array = delicate_array(type, kind);
                    const Coded expected = coded(array, params, {"default"});
                    require(coded(array, params, settings) == expected, "bytes and values are the same");
                    if (params.reversible()) require(expected.values == array.values(), "every bit comes back");
                    ++place.number;
                }
    }
}
