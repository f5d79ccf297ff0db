// Memory as HDF5 takes it from a filter, and what both directions need.
#pragma once

#include <cstdlib>
#include <limits>
#include <memory>

#include "messages.hpp"

namespace tamis::plugin {

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::uint8_t, Free>;

inline Buffer allocate(std::size_t nbytes) {
    return Buffer(static_cast<std::uint8_t*>(std::malloc(nbytes > 0 ? nbytes : 1)));
}

// What a filter gives to HDF5: `nbytes` of the buffer, or why there is none.
struct Outcome {
    Buffer buffer;
    std::size_t nbytes = 0, allocated = 0;
    Message error;
};

inline Outcome failure(const Message& message) {
    Outcome outcome;
    outcome.error = message;
    return outcome;
}

// Bytes of the chunk that the header describes; 0 where no memory could hold them.
inline std::size_t chunk_nbytes(const Header& header) {
    std::size_t nbytes = zfp::item_nbytes(header.type);
    for (unsigned axis = 0; axis < header.layout.rank; ++axis) {
        if (header.layout.extent[axis] > std::numeric_limits<std::ptrdiff_t>::max() / nbytes) return 0;
        nbytes *= header.layout.extent[axis];
    }
    return nbytes;
}

inline void swap_values(std::uint8_t* bytes, std::size_t nbytes, std::size_t item_nbytes) {
    const auto swap = [&](auto zero) {
        for (std::size_t at = 0; at + sizeof zero <= nbytes; at += sizeof zero) {
            std::memcpy(&zero, bytes + at, sizeof zero);
            zero = zfp::byteswap(zero);
            std::memcpy(bytes + at, &zero, sizeof zero);
        }
    };
    if (item_nbytes == 4)
        swap(std::uint32_t{});
    else
        swap(std::uint64_t{});
}

}  // namespace tamis::plugin
