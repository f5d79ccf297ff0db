// The filter itself: a chunk of values to a stream, and back.
#pragma once

#include "buffer.hpp"

namespace tamis::plugin {

// Fails where the stream would not keep the tolerance of accuracy mode, or what is missing: see proof.hpp.
Outcome encode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes);

Outcome decode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes);

}  // namespace tamis::plugin
