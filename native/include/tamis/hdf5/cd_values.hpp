// cd_values, the parameters of filter 32013: what a caller requests, and what a file stores.
//
// Requested: a mode number (1 … 5), a word that is not used, and the mode's numbers; doubles lie in two words in the
// machine's own order. Stored: a word of versions, then the ZFP header of the chunk, then up to two words of our own,
// which other readers ignore. See docs/format.md.
#pragma once

#include <limits>
#include <optional>

#include "tamis/zfp/header.hpp"

namespace tamis::hdf5 {

using zfp::Code;
using zfp::Header;
using zfp::Layout;
using zfp::Params;
using zfp::Status;
using zfp::Type;

using CdValues = std::span<const unsigned>;

// A word of versions and the longest header: as many as H5Z-ZFP reads.
inline constexpr std::size_t max_stored = 1 + zfp::header_max_nbytes / 4;
static_assert(max_stored == 6);

// zfp 1.0.1.0, codec 5, H5Z-ZFP 1.1.1: the writer whose bytes ours are.
inline constexpr unsigned version_word = 0x10105111;

// Alone behind the header, it says that chunks are written as H5Z-ZFP writes them, without proof.
inline constexpr unsigned unproven_word = 0x666f7270;

// The last of three words behind the header, in memory only: chunks are a Zarr store's, which has no filter masks. Its
// lowest bits say that the two words before it are a fill value, and that nothing is proven.
inline constexpr unsigned zarr_word = 0x6e637a00, zarr_has_fill = 1, zarr_unproven = 2;

struct Stored {
    Header header;
    bool swapped = false;               // written on a machine of the other byte order
    bool proven = true;                 // false where the writer asked for H5Z-ZFP's behaviour
    bool in_zarr = false;               // a Zarr store's chunks
    std::optional<std::uint64_t> fill;  // bits of the fill value, where a change within the tolerance could alter them
};

// Bytes of the chunk that the header describes; 0 where no memory could hold them.
inline std::size_t chunk_nbytes(const Header& header) {
    std::size_t nbytes = zfp::item_nbytes(header.type);
    for (unsigned axis = 0; axis < header.layout.rank; ++axis) {
        if (header.layout.extent[axis] > std::numeric_limits<std::ptrdiff_t>::max() / nbytes) return 0;
        nbytes *= header.layout.extent[axis];
    }
    return nbytes;
}

// Whether a chunk of as many bytes as its values is the values themselves, unfiltered. So Zarr stores keep what HDF5
// marks in a chunk's filter mask. Only where no stream has to have that size, and where not every value can be encoded.
inline bool may_be_unfiltered(const Stored& stored) {
    const auto& [type, layout, params, nbits] = stored.header;
    if (!stored.in_zarr || params.lossless()) return false;
    // In bounds: a layout whose values fit into memory.
    const std::size_t fixed = (layout.blocks() * params.minbits + 7) / 8;
    return params.minbits < params.maxbits || fixed != chunk_nbytes(stored.header);
}

namespace detail {

inline double double_at(CdValues values, std::size_t index) {
    double number;
    std::memcpy(&number, &values[index], sizeof number);
    return number;
}

inline std::size_t header_bytes(CdValues values, bool swapped, std::uint8_t (&out)[zfp::header_max_nbytes]) {
    const std::size_t words = std::min(values.size() - 1, zfp::header_max_nbytes / 4);
    for (std::size_t i = 0; i < words; ++i) {
        const unsigned word = swapped ? zfp::byteswap(values[1 + i]) : values[1 + i];
        std::memcpy(out + 4 * i, &word, 4);
    }
    return 4 * words;
}

// The codec that the version word names. Filters before 1.1.0 wrote no codec, but zfp's version in three digits.
constexpr unsigned codec_of_writer(unsigned word) {
    if ((word & 0xfff) >= 0x110) return word >> 12 & 0xf;
    const unsigned library = (word >> 16) << 4;
    return library < 0x0500 ? 4 : library < 0x1000 ? library >> 8 : zfp::codec_version;
}

inline bool has_magic(CdValues values, bool swapped) {
    std::uint8_t bytes[zfp::header_max_nbytes] = {};
    return header_bytes(values, swapped, bytes) >= 4 && bytes[0] == 'z' && bytes[1] == 'f' && bytes[2] == 'p';
}

}  // namespace detail

// No requested form has the magic in its second word together with so large a first.
inline bool is_stored(CdValues values) {
    return values.size() >= 4 && values[0] > 0xffff &&
           (detail::has_magic(values, false) || detail::has_magic(values, true));
}

inline Status parse_stored(CdValues values, Stored& stored) {
    if (values.size() < 4) return {Code::not_a_header};
    stored.swapped = !detail::has_magic(values, false);
    std::uint8_t bytes[zfp::header_max_nbytes] = {};
    const std::size_t nbytes = detail::header_bytes(values, stored.swapped, bytes);
    if (const Status status = zfp::unpack_header({bytes, nbytes}, stored.header); !status) return status;
    const unsigned codec = detail::codec_of_writer(values[0]);
    if (codec > zfp::codec_version) return {Code::codec_version, codec};
    const CdValues spare = values.subspan(std::min(values.size(), 1 + (stored.header.nbits + 31) / 32));
    if (spare.size() == 1) stored.proven = spare[0] != unproven_word;
    if (spare.size() == 2 && (spare[1] == 0 || zfp::item_nbytes(stored.header.type) == 8))
        stored.fill = spare[0] | std::uint64_t{spare[1]} << 32;
    if (spare.size() == 3 && (spare[2] & ~(zarr_has_fill | zarr_unproven)) == zarr_word) {
        stored.in_zarr = true;
        stored.proven = (spare[2] & zarr_unproven) == 0;
        if ((spare[2] & zarr_has_fill) != 0) stored.fill = spare[0] | std::uint64_t{spare[1]} << 32;
    }
    return zfp::check(stored.header.params, stored.header.type);
}

// The parameters that requested cd_values, of either form, mean for chunks of this type and rank.
inline Status params_of_request(CdValues values, Type type, unsigned rank, Params& params) {
    params = {};
    if (values.empty()) return {};
    if (is_stored(values)) {
        // A header that came with a copied property list. Its extents belong to another chunk; its mode holds.
        Stored stored;
        if (const Status status = parse_stored(values, stored); !status) return status;
        const Params& old = stored.header.params;
        const bool rate = old.minbits == old.maxbits && old.maxprec == zfp::max_prec && old.minexp == zfp::min_exp;
        if (rate) {
            const double per_value = old.maxbits / static_cast<double>(zfp::block_size(stored.header.layout.rank));
            return zfp::set_rate(params, per_value, type, rank);
        }
        params = old;
        return {};
    }
    const unsigned mode = values[0];
    constexpr std::size_t needed[] = {0, 4, 3, 4, 6, 1};  // by mode, which begin at 1
    if (mode < 1 || mode >= std::size(needed)) return {Code::bad_mode, mode};
    if (values.size() < needed[mode]) return {Code::too_few_values, needed[mode]};
    switch (mode) {
        case 1:
            return zfp::set_rate(params, detail::double_at(values, 2), type, rank);
        case 2:  // 0, and more planes than there are, mean all of them, as in H5Z-ZFP
            return zfp::set_precision(params, values[2] == 0 ? zfp::max_prec : std::min(values[2], zfp::max_prec));
        case 3:
            return zfp::set_accuracy(params, detail::double_at(values, 2));
        case 4:
            return zfp::set_expert(params, values[2], values[3], values[4], static_cast<int>(values[5]));
        default:
            params = zfp::reversible_params();
            return {};
    }
}

// Accuracy below 1 promises integers what the lossy transform does not keep.
inline Status check_request(const Params& params, Type type) {
    const Params accuracy{zfp::min_bits, zfp::max_bits, zfp::max_prec, params.minexp};
    if (!zfp::is_float(type) && params == accuracy && !params.reversible() && params.minexp != zfp::min_exp &&
        params.minexp < 0)
        return {Code::integer_accuracy};
    return zfp::check(params, type);
}

// What set_local leaves in the file: `count` words of `out`.
inline Status stored_of_params(const Params& params, Type type, const Layout& layout, unsigned (&out)[max_stored],
                               std::size_t& count) {
    std::uint8_t bytes[zfp::header_max_nbytes];
    std::size_t nbits = 0;
    if (const Status status = zfp::pack_header(type, layout, params, bytes, nbits); !status) return status;
    out[0] = version_word;
    std::memcpy(out + 1, bytes, sizeof bytes);
    count = 1 + (nbits + 31) / 32;
    return {};
}

// Put words behind the header of stored parameters. Only the short header leaves room: H5Z-ZFP takes six words.
inline Status append(std::initializer_list<unsigned> words, unsigned (&out)[max_stored], std::size_t& count) {
    if (count + words.size() > max_stored) return {Code::no_room};
    for (const unsigned word : words) out[count++] = word;
    return {};
}

inline Status append_unproven(unsigned (&out)[max_stored], std::size_t& count) {
    return append({unproven_word}, out, count);
}

// Integers without sign, so that no order of bytes matters.
inline Status append_fill(std::uint64_t bits, unsigned (&out)[max_stored], std::size_t& count) {
    return append({static_cast<unsigned>(bits), static_cast<unsigned>(bits >> 32)}, out, count);
}

}  // namespace tamis::hdf5
