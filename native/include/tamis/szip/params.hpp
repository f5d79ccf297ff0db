// Parameters of HDF5 filter 4, szip, and what its coder makes of them: the extended Rice code of CCSDS 121.0-B.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/filters/status.hpp"

namespace tamis::szip {

using filters::Code;
using filters::Status;

inline constexpr unsigned most_pixels = 32;       // of a block
inline constexpr unsigned most_blocks = 128;      // of a scan line
inline constexpr unsigned segment_blocks = 64;    // in which a run of zero blocks ends that an encoder writes
inline constexpr std::size_t size_nbytes = 4;     // of the size that HDF5 puts in front of a stream
inline constexpr unsigned values_count = 4;       // cd_values in a file
inline constexpr unsigned most_sample_bits = 31;  // pixels of 32 and 64 bits are coded as bytes

// Samples as the coder sees them.
struct Coding {
    bool differences = false;  // of neighbours, and a reference sample in each scan line: HDF5's `nn`
    bool big = false;          // samples have their highest byte first
    unsigned pixels = 0;       // samples of a block
    unsigned bits = 0;         // of a sample
    unsigned line = 0;         // samples of a scan line, which is coded in whole blocks

    constexpr unsigned sample_nbytes() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }
    constexpr unsigned blocks() const { return (line + pixels - 1) / pixels; }
};

// The id in front of a block, which tells its code option: zero blocks and second extension, which one more bit tells
// apart; split samples, whose k is one less than the id; verbatim samples.
template <class Sample>
struct Id {
    static constexpr unsigned bits = sizeof(Sample) == 1 ? 3 : sizeof(Sample) == 2 ? 4 : 5;
    static constexpr unsigned low_entropy = 0, verbatim = (1u << bits) - 1, most_k = verbatim - 2;
};

struct Params {
    Coding coding;
    unsigned planes = 1;  // bytes of a pixel that are coded one behind the other: all first ones, then all second ones

    constexpr unsigned pixel_nbytes() const { return planes > 1 ? planes : coding.sample_nbytes(); }
};

// Of an option mask, pixels of a block, bits of a pixel and pixels of a scan line.
constexpr Status parse(std::span<const unsigned> values, Params& params) {
    constexpr unsigned msb_mask = 16, nn_mask = 32;
    if (values.size() != values_count) return {Code::bad_parameter, values.size()};
    const unsigned mask = values[0], pixels = values[1], bits = values[2], line = values[3];
    if (pixels % 2 != 0 || pixels < 2 || pixels > most_pixels) return {Code::bad_parameter, 1};
    if (bits == 0 || (bits > 32 && bits != 64)) return {Code::bad_parameter, 2};
    if (line < pixels || line > pixels * most_blocks) return {Code::bad_parameter, 3};
    params.planes = bits >= 32 ? bits / 8 : 1;
    params.coding = {(mask & nn_mask) != 0, (mask & msb_mask) != 0, pixels, bits >= 32 ? 8 : bits, line};
    return {};
}

}  // namespace tamis::szip
