// The ZFP header: 32-bit magic, 52-bit meta (type and extents), 12- or 64-bit mode. Bits are packed lowest first.
//
// It opens a full-header stream, and it is what H5Z-ZFP keeps in cd_values[1 …]: see docs/format.md.
#pragma once

#include <span>

#include "bytes.hpp"
#include "params.hpp"

namespace tamis::zfp {

inline constexpr unsigned codec_version = 5;
inline constexpr unsigned magic_nbits = 32, extents_nbits = 48, meta_nbits = extents_nbits + 4, short_mode_nbits = 12;
inline constexpr std::size_t header_short_nbits = magic_nbits + meta_nbits + short_mode_nbits;
inline constexpr std::size_t header_long_nbits =
    header_short_nbits + 2 * header_bits_nbits + header_prec_nbits + header_exp_nbits;
inline constexpr std::size_t header_max_nbytes = (header_long_nbits + 31) / 32 * 4;  // in whole 32-bit words
static_assert(header_short_nbits == 96 && header_long_nbits == 148 && header_max_nbytes == 20);

// Longest axis of an array of `rank` axes.
constexpr std::size_t max_extent(unsigned rank) { return std::size_t{1} << extents_nbits / rank; }

struct Header {
    Type type = Type::float64;
    Layout layout;  // contiguous
    Params params;
    std::size_t nbits = 0;
};

namespace detail {

// Short codes cover one mode each: rates, then precisions, reversible, accuracies. The last one, all ones, says that
// the four numbers follow.
inline constexpr unsigned long_mode = (1u << short_mode_nbits) - 1;
inline constexpr unsigned max_rate_nbits = 2048;
inline constexpr unsigned first_precision = max_rate_nbits, reversible_code = first_precision + 128;
inline constexpr int accuracy_origin = static_cast<int>(reversible_code) + 1 - min_exp;
inline constexpr int max_accuracy_exp = static_cast<int>(long_mode) - 1 - accuracy_origin;
static_assert(reversible_code == 2176 && accuracy_origin == 3251 && max_accuracy_exp == 843);

constexpr std::uint64_t short_mode(const Params& p) {
    const bool any_size = p.minbits <= min_bits && p.maxbits >= max_bits;
    if (p == Params{}) return long_mode;
    if (p.minbits == p.maxbits && p.maxbits <= max_rate_nbits && p.maxprec >= max_prec && p.minexp == min_exp)
        return p.maxbits - 1;
    if (any_size && p.minexp == min_exp) return first_precision + p.maxprec - 1;
    if (any_size && p.maxprec >= max_prec && p.minexp < min_exp) return reversible_code;
    if (any_size && p.maxprec >= max_prec && p.minexp <= max_accuracy_exp)
        return static_cast<std::uint64_t>(p.minexp + accuracy_origin);
    return long_mode;
}

// What lies beyond the fields is cut to them, as libzfp does; none of it can matter to a block but minbits.
constexpr std::uint64_t long_mode_fields(Params p) {
    p.minbits = std::max(p.minbits, 1u);
    p.maxbits = std::clamp(p.maxbits, 1u, header_max_bits);
    p.minexp = std::clamp(p.minexp, header_min_exp, header_max_exp);
    return std::uint64_t{p.minbits - 1} | std::uint64_t{p.maxbits - 1} << 15 | std::uint64_t{p.maxprec - 1} << 30 |
           static_cast<std::uint64_t>(p.minexp - header_min_exp) << 37;
}

constexpr Params params_of_short(unsigned code) {
    if (code < first_precision) return {code + 1, code + 1, max_prec, min_exp};
    if (code < reversible_code) return {min_bits, max_bits, std::min(code - first_precision + 1, max_prec), min_exp};
    if (code == reversible_code) return reversible_params();
    return {min_bits, max_bits, max_prec, static_cast<int>(code) - accuracy_origin};
}

constexpr Params params_of_long(std::uint64_t fields) {
    return {static_cast<unsigned>(fields & 0x7fff) + 1, static_cast<unsigned>(fields >> 15 & 0x7fff) + 1,
            std::min(static_cast<unsigned>(fields >> 30 & 0x7f) + 1, max_prec),
            static_cast<int>(fields >> 37 & 0x7fff) + header_min_exp};
}

}  // namespace detail

// Fill `out` (zeros beyond the header) and set `nbits`. The layout's strides do not matter.
inline Status pack_header(Type type, const Layout& layout, const Params& params,
                          std::span<std::uint8_t, header_max_nbytes> out, std::size_t& nbits) {
    const unsigned width = extents_nbits / layout.rank;
    std::uint64_t extents = 0;
    for (unsigned axis = 0; axis < layout.rank; ++axis) {
        const std::size_t extent = layout.extent[axis];
        if (extent == 0 || (extent - 1) >> width != 0) return {Code::extent_large, axis};
        extents |= std::uint64_t{extent - 1} << (axis * width);
    }
    const std::uint64_t meta = extents << 4 | std::uint64_t{layout.rank - 1} << 2 | (static_cast<unsigned>(type) - 1);
    const std::uint64_t mode = detail::short_mode(params);
    const std::uint64_t fields = mode == detail::long_mode ? detail::long_mode_fields(params) : 0;
    const std::uint64_t magic = 'z' | 'f' << 8 | 'p' << 16 | codec_version << 24;
    // Bits 0…31 magic, 32…83 meta, 84…95 mode, 96…147 the long mode's fields.
    store_le64(out.data(), magic | meta << 32);
    store_le64(out.data() + 8, meta >> 32 | mode << 20 | fields << 32);
    store_le32(out.data() + 16, static_cast<std::uint32_t>(fields >> 32));
    nbits = mode == detail::long_mode ? header_long_nbits : header_short_nbits;
    return {};
}

inline Status unpack_header(std::span<const std::uint8_t> in, Header& header) {
    if (in.size() < header_short_nbits / 8) return {Code::not_a_header};
    std::uint8_t bytes[24] = {};
    std::copy_n(in.begin(), std::min(in.size(), header_max_nbytes), bytes);
    if (bytes[0] != 'z' || bytes[1] != 'f' || bytes[2] != 'p') return {Code::not_a_header};
    if (bytes[3] != codec_version) return {Code::codec_version, bytes[3]};
    const std::uint64_t low = load_le64(bytes), high = load_le64(bytes + 8);
    const std::uint64_t meta = low >> 32 | (high & 0xfffff) << 32;
    const unsigned mode = high >> 20 & 0xfff;
    const bool is_long = mode == detail::long_mode;
    if (is_long && in.size() * 8 < header_long_nbits) return {Code::not_a_header};

    const unsigned rank = static_cast<unsigned>(meta >> 2 & 3) + 1, width = extents_nbits / rank;
    std::array<std::size_t, max_rank> extent{1, 1, 1, 1};
    for (unsigned axis = 0; axis < rank; ++axis)
        extent[axis] = (meta >> 4 >> (axis * width) & ((std::uint64_t{1} << width) - 1)) + 1;
    header.type = static_cast<Type>((meta & 3) + 1);
    header.layout = Layout::contiguous(rank, extent);
    const std::uint64_t fields = high >> 32 | (load_le64(bytes + 16) & 0xfffff) << 32;
    header.params = is_long ? detail::params_of_long(fields) : detail::params_of_short(mode);
    header.nbits = is_long ? header_long_nbits : header_short_nbits;
    return {};
}

}  // namespace tamis::zfp
