// What can go wrong, once for all callers. The Python module and the HDF5 plugin each turn it into their own words.
#pragma once

#include <cstddef>

namespace tamis::zfp {

enum class Code {
    ok,
    non_finite,     // NaN or infinity in a lossy mode; where = index of the first, in C order
    integer_range,  // integer beyond the lossy range; where = index of the first, in C order
    changed,        // values were changed by somebody else while they were encoded
    truncated,      // the stream ends inside a block; where = number of that block
    not_a_header,   // no ZFP magic, or fields that no writer produces
    codec_version,  // a ZFP header of another codec than 5; where = that codec
    bad_rate,
    bad_precision,
    bad_accuracy,
    bad_expert,
    bad_mode,          // unknown mode number; where = that number
    too_few_values,    // fewer parameters than the mode needs; where = how many it needs
    maxbits_small,     // maxbits does not hold the header of a block; where = bits needed
    extent_large,      // an extent does not fit the header; where = axis, x = 0
    integer_accuracy,  // accuracy below 1 on integers
    beyond_tolerance,  // a value would be further off than the tolerance; where = its index, in C order
    fill_value,        // a value would become the fill value, or stop being it; where = its index, in C order
    no_memory,         // where = bytes
    no_room            // stored parameters have no place for what has to be noted
};

struct Status {
    Code code = Code::ok;
    std::size_t where = 0;
    // Where floats were encoded with loss: all of them are below 2^exponent. Blocks know it; a pass of its own costs
    // 5 to 20 % of encoding.
    int exponent = 0;

    constexpr explicit operator bool() const { return code == Code::ok; }
};

}  // namespace tamis::zfp
