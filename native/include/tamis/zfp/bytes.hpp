// Little-endian loads and stores at any address.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tamis::zfp {

template <class UInt>
constexpr UInt byteswap(UInt value) {
    if constexpr (sizeof(UInt) == 8)
        return __builtin_bswap64(value);
    else if constexpr (sizeof(UInt) == 4)
        return __builtin_bswap32(value);
    else
        return __builtin_bswap16(value);
}

template <class UInt>
inline UInt load_le(const std::uint8_t* in) {
    UInt value;
    std::memcpy(&value, in, sizeof value);
    if constexpr (std::endian::native == std::endian::big) value = byteswap(value);
    return value;
}

template <class UInt>
inline void store_le(std::uint8_t* out, UInt value) {
    if constexpr (std::endian::native == std::endian::big) value = byteswap(value);
    std::memcpy(out, &value, sizeof value);
}

inline std::uint64_t load_le64(const std::uint8_t* in) { return load_le<std::uint64_t>(in); }
inline void store_le64(std::uint8_t* out, std::uint64_t value) { store_le(out, value); }
inline void store_le32(std::uint8_t* out, std::uint32_t value) { store_le(out, value); }

}  // namespace tamis::zfp
