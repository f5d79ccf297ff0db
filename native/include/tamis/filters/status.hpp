// What can go wrong in a filter, once for all of them.
#pragma once

#include <cstddef>

namespace tamis::filters {

enum class Code {
    ok,
    bad_itemsize,   // no item has so many bytes; where = that number
    bad_block,      // a block is a multiple of eight items, and not empty; where = the number given
    bad_parameter,  // a cd_value that no writer stores; where = its index, the number of values if one is missing
    wrong_nbytes,   // the chunk has another size than the parameters say; where = the size that they say
    truncated,      // the filtered chunk is too short; where = the bytes that it needs
    bad_minbits,    // the filtered chunk tells of more bits than a value has; where = that number
    non_finite,     // a NaN would come back as a number; where = index of the first
    too_wide,       // a value has more bits than its type; where = index of the first value of its scan line
    no_room,        // the filtered chunk would be larger; where = the bytes that it may have
    damaged,        // the filtered chunk says what no writer does; where = index of the first value of its scan line
    no_memory       // where = the bytes that were asked for
};

struct Status {
    Code code = Code::ok;
    std::size_t where = 0;

    constexpr explicit operator bool() const { return code == Code::ok; }
};

}  // namespace tamis::filters
