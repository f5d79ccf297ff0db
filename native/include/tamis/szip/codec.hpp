// Chunks of HDF5 filter 4, without the size in front: pixels of any width, and the kernel that codes them.
#pragma once

#include "tamis/filters/shuffle.hpp"
#include "tamis/szip/kernel.hpp"
#include "tamis/zfp/memory.hpp"

namespace tamis::szip {

namespace detail {

// Bytes as the coder takes them: those of pixels in planes, which `memory` then owns. Null if there is none.
inline const std::uint8_t* planes_of(const Params& params, std::span<const std::uint8_t> in, zfp::RawMemory& memory) {
    if (params.planes == 1) return in.data();
    memory = zfp::raw_memory(in.size());
    if (memory) filters::shuffle(in, params.planes, memory.get());
    return memory.get();
}

}  // namespace detail

// Whole pixels to a stream of at most `out.size()` bytes.
inline Status encode(const Kernel& kernel, const Params& params, std::span<const std::uint8_t> in,
                     std::span<std::uint8_t> out, std::size_t& nbytes) {
    if (in.size() % params.pixel_nbytes() != 0)
        return {Code::wrong_nbytes, in.size() - in.size() % params.pixel_nbytes()};
    zfp::RawMemory memory;
    const std::uint8_t* samples = detail::planes_of(params, in, memory);
    if (samples == nullptr && !in.empty()) return {Code::no_memory, in.size()};
    return kernel.encode(params.coding, samples, in.size() / params.coding.sample_nbytes(), out, nbytes);
}

// The bytes of that stream with each of several parameters, also where they are more than the chunk's.
inline Status measure(const Kernel& kernel, std::span<const Params> each, std::span<const std::uint8_t> in,
                      std::size_t* nbytes) {
    zfp::RawMemory memory;
    const std::uint8_t* samples = nullptr;
    unsigned planes = 0;  // that `samples` are in
    for (const Params& params : each) {
        if (in.size() % params.pixel_nbytes() != 0)
            return {Code::wrong_nbytes, in.size() - in.size() % params.pixel_nbytes()};
        if (planes != params.planes) samples = detail::planes_of(params, in, memory);
        planes = params.planes;
        if (samples == nullptr && !in.empty()) return {Code::no_memory, in.size()};
        const std::size_t count = in.size() / params.coding.sample_nbytes();
        if (const Status status = kernel.measure(params.coding, samples, count, *nbytes++); !status) return status;
    }
    return {};
}

inline Status decode(const Kernel& kernel, const Params& params, std::span<const std::uint8_t> in,
                     std::span<std::uint8_t> out) {
    if (out.size() % params.pixel_nbytes() != 0)
        return {Code::wrong_nbytes, out.size() - out.size() % params.pixel_nbytes()};
    if (params.planes == 1)
        return kernel.decode(params.coding, in, out.data(), out.size() / params.coding.sample_nbytes());
    const zfp::RawMemory planes = zfp::raw_memory(out.size());
    if (!planes && !out.empty()) return {Code::no_memory, out.size()};
    const Status status = kernel.decode(params.coding, in, planes.get(), out.size());
    if (status) filters::unshuffle({planes.get(), out.size()}, params.planes, out.data());
    return status;
}

}  // namespace tamis::szip
