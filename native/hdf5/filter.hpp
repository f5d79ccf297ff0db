// The filter itself: a chunk of values to a stream, and back, in memory as HDF5 takes it from a filter.
#pragma once

#include <cstdlib>
#include <memory>

#include "tamis/hdf5/cd_values.hpp"
#include "tamis/hdf5/messages.hpp"

namespace tamis::hdf5 {

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::uint8_t, Free>;

// What a filter gives to HDF5: `nbytes` of the buffer, or why there is none. Or nothing, if the chunk stays as it is.
struct Outcome {
    Buffer buffer;
    std::size_t nbytes = 0, allocated = 0;
    bool unfiltered = false;
    Message error;
};

// Why a chunk is not filtered.
inline Outcome failure(const Message& message) {
    Outcome outcome;
    outcome.error = message;
    return outcome;
}

// The chunk of a Zarr store stays as it is.
inline Outcome unfiltered() {
    Outcome outcome;
    outcome.unfiltered = true;
    return outcome;
}

// Fails where the stream would not keep the tolerance of accuracy mode, or what is missing: see proof.hpp. Chunks of
// Zarr stores stay unfiltered then, where may_be_unfiltered says so.
Outcome encode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes);

Outcome decode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes);

}  // namespace tamis::hdf5
