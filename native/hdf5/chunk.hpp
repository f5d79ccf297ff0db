// The chunks of a dataset as ZFP sees them, and the parameters to store for them, whatever library asks.
#pragma once

#include "tamis/hdf5/messages.hpp"

namespace tamis::hdf5 {

// Type and layout of a new dataset's chunks, as far as ZFP can take them.
struct Chunk {
    Type type = Type::float64;
    bool is_unsigned = false;
    Layout layout;
};

// Set the layout of a chunk, given its extents, slowest first: axes of 1 are left out. The message says why ZFP cannot
// take it; it is empty where it can.
Message layout_of_chunk(std::span<const unsigned long long> extents, Layout& layout);

// Set the parameters that a request, of either form, means for a chunk, and the `count` words to store. The message
// says why they cannot be taken; it is empty where they can.
Message stored_of_request(CdValues requested, const Chunk& chunk, Params& params, unsigned (&stored)[max_stored],
                          std::size_t& count);

}  // namespace tamis::hdf5
