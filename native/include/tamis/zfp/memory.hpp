// Memory that is allocated, and not cleared.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace tamis::zfp {

struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
};

// Not touched until it is used; null where there is none.
using RawMemory = std::unique_ptr<std::uint8_t, Free>;

inline RawMemory raw_memory(std::size_t nbytes) { return RawMemory(static_cast<std::uint8_t*>(std::malloc(nbytes))); }

}  // namespace tamis::zfp
