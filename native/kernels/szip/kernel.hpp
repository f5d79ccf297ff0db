// A kernel out of a family of steps, for each width of samples and the usual sizes of blocks.
#pragma once

#include "tamis/szip/decode.hpp"
#include "tamis/szip/encode.hpp"
#include "tamis/szip/kernel.hpp"

namespace tamis::szip::detail {

// Call `f` with the type of samples and the pixels of a block, 0 for others, as template arguments.
template <class Family, class F>
Status specialise(const Coding& coding, F f) {
    const auto with_pixels = [&]<class Sample>() {
        switch (coding.pixels) {
            case 8:
                return f.template operator()<Sample, 8>();
            case 16:
                return f.template operator()<Sample, 16>();
            case 32:
                return f.template operator()<Sample, 32>();
            default:
                return f.template operator()<Sample, 0>();
        }
    };
    switch (coding.sample_nbytes()) {
        case 1:
            return with_pixels.template operator()<std::uint8_t>();
        case 2:
            return with_pixels.template operator()<std::uint16_t>();
        default:  // rare
            return f.template operator()<std::uint32_t, 0>();
    }
}

template <class Family>
Status encode(const Coding& coding, const std::uint8_t* in, std::size_t count, std::span<std::uint8_t> out,
              std::size_t& nbytes) {
    return specialise<Family>(coding, [&]<class Sample, unsigned fixed>() {
        return encode_samples<Family, Sample, fixed>(coding, in, count, out, nbytes);
    });
}

template <class Family>
Status decode(const Coding& coding, std::span<const std::uint8_t> in, std::uint8_t* out, std::size_t count) {
    return specialise<Family>(coding, [&]<class Sample, unsigned fixed>() {
        return decode_samples<Family, Sample, fixed>(coding, in, out, count);
    });
}

template <class Family>
Status measure(const Coding& coding, const std::uint8_t* in, std::size_t count, std::size_t& nbytes) {
    return specialise<Family>(coding, [&]<class Sample, unsigned fixed>() {
        return measure_samples<Family, Sample, fixed>(coding, in, count, nbytes);
    });
}

template <class Family>
constexpr Kernel kernel_of(const char* name) {
    return {name, encode<Family>, decode<Family>, measure<Family>};
}

}  // namespace tamis::szip::detail
