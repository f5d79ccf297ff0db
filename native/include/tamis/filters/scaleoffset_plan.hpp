// Parameters and header of HDF5 filter 6, and how many bits the values of a chunk take.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "tamis/filters/bits.hpp"
#include "tamis/filters/status.hpp"

namespace tamis::filters::scaleoffset {

using Values = std::span<const unsigned>;

// Stored values by index. The fill value follows, its low word first.
enum Index : std::size_t {
    scale_type,
    scale_factor,
    item_count,
    item_class,
    item_nbytes,
    sign,
    order,
    fill,
    fill_value
};

inline constexpr std::size_t value_count = 20;
inline constexpr unsigned decimal_scale = 0, integer_scale = 2;  // 1, the E-scale, was never written

// Header of a filtered chunk: minbits (4 bytes), nbytes of minval (1), minval (8), zeros.
inline constexpr std::size_t header_nbytes = 21;

struct Params {
    std::size_t items = 0;
    unsigned nbytes = 0;  // of an item: 1, 2, 4 or 8; of floats 4 or 8
    int factor = 0;       // decimal digits to keep of floats; bits of integers, 0: as many as they need
    bool is_float = false, is_signed = false, big = false, has_fill = false;
    std::uint64_t fill_bits = 0;

    unsigned nbits() const { return 8 * nbytes; }
    std::size_t chunk_nbytes() const { return items * nbytes; }
    // All bits were asked for: chunks are stored as they are, without a header.
    bool verbatim() const { return !is_float && factor == static_cast<int>(nbits()); }
};

inline Status parse(Values values, Params& params) {
    const auto fault = [](std::size_t index) { return Status{Code::bad_parameter, index}; };
    if (values.size() != value_count) return fault(values.size());
    if (values[item_class] > 1) return fault(item_class);
    params.is_float = values[item_class] == 1;
    // Older libhdf5 left rubbish in words that it does not look at: the sign of floats, the fill value if there is
    // none.
    if (!params.is_float && values[sign] > 1) return fault(sign);
    if (values[scale_type] != (params.is_float ? decimal_scale : integer_scale)) return fault(scale_type);
    params.nbytes = values[item_nbytes];
    const bool known = params.nbytes == 4 || params.nbytes == 8;
    if (!known && (params.is_float || (params.nbytes != 1 && params.nbytes != 2))) return fault(item_nbytes);
    params.factor = static_cast<int>(values[scale_factor]);
    if (!params.is_float) {
        params.factor = params.factor < 0 ? 0 : params.factor;
        if (params.factor > static_cast<int>(params.nbits())) return fault(scale_factor);
    }
    params.items = values[item_count];
    params.is_signed = !params.is_float && values[sign] == 1;
    params.big = values[order] == 1;
    params.has_fill = values[fill] == 1;
    params.fill_bits = (std::uint64_t{values[fill_value + 1]} << 32 | values[fill_value]) & low_bits(params.nbits());
    return {};
}

// For an unfiltered chunk of `nbytes` bytes, which is not verbatim.
inline Status check_nbytes(const Params& params, std::size_t nbytes) {
    return params.chunk_nbytes() == nbytes ? Status{} : Status{Code::wrong_nbytes, params.chunk_nbytes()};
}

// The header: each value is stored as its difference to minval, in minbits bits. All ones are the fill value.
struct Header {
    unsigned minbits = 0;
    std::uint64_t minval = 0;  // integers: with its sign extended; floats: the bits of the number
};

inline Status read_header(std::span<const std::uint8_t> in, const Params& params, Header& header) {
    if (in.size() < header_nbytes) return {Code::truncated, header_nbytes};
    header.minbits = zfp::load_le<std::uint32_t>(in.data());
    if (header.minbits > params.nbits()) return {Code::bad_minbits, header.minbits};
    const unsigned known = in[4] < 8 ? in[4] : 8u;
    header.minval = zfp::load_le64(in.data() + 5) & low_bits(8 * known);
    return {};
}

inline void write_header(const Header& header, std::uint8_t* out) {
    std::fill(out, out + header_nbytes, std::uint8_t{0});
    zfp::store_le32(out, header.minbits);
    out[4] = 8;
    zfp::store_le64(out + 5, header.minval);
}

// Number of bits below which `number` > 0 lies, itself included if it is a power of two.
constexpr unsigned ceiled_log2(std::uint64_t number) { return static_cast<unsigned>(std::bit_width(number - 1)); }

// Stored codes of integers of type Int.
template <class Int>
class Integers {
public:
    using Word = std::make_unsigned_t<Int>;
    using Value = Int;

    explicit Integers(const Params& params) : has_fill_(params.has_fill), fill_(static_cast<Int>(params.fill_bits)) {}

    // Without a branch, so that many are seen at once.
    void see(Value value) {
        const bool counts = !(has_fill_ && value == fill_);
        low_ = counts && value < low_ ? value : low_;
        high_ = counts && value > high_ ? value : high_;
    }
    Header header(const Params& params) {
        constexpr unsigned full = 8 * sizeof(Int);
        if (low_ > high_) low_ = high_ = 0;  // nothing but fill values
        const auto minval = static_cast<std::uint64_t>(low_);
        if (params.factor != 0) return {static_cast<unsigned>(params.factor), minval};
        const auto range = static_cast<Word>(static_cast<Word>(high_) - static_cast<Word>(low_));
        // No room for a fill value, kept all the same without one. libhdf5 then leaves minval alone, but in one case.
        if (range > static_cast<Word>(~Word{2})) {
            constexpr bool is_char = std::is_same_v<Int, std::int8_t>;
            return {full, is_char && !has_fill_ ? minval : 0};
        }
        return {ceiled_log2(std::uint64_t{range} + 1 + has_fill_), minval};
    }
    Word code(Value value, unsigned minbits) const {
        if (has_fill_ && value == fill_) return static_cast<Word>(low_bits(minbits));
        return static_cast<Word>(static_cast<Word>(value) - static_cast<Word>(low_));
    }

    void begin(const Header& header) { low_ = static_cast<Int>(header.minval); }
    Value value(std::uint64_t code, unsigned minbits) const {
        if (has_fill_ && code == low_bits(minbits)) return fill_;
        return static_cast<Int>(static_cast<Word>(code + static_cast<Word>(low_)));
    }

private:
    bool has_fill_;
    Int fill_, low_ = std::numeric_limits<Int>::max(), high_ = std::numeric_limits<Int>::min();
};

}  // namespace tamis::filters::scaleoffset
