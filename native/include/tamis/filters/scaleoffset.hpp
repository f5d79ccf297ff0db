// HDF5 filter 6: numbers as differences to the least one, in as many bits as the greatest difference takes.
#pragma once

#include <algorithm>

#include "tamis/filters/scaleoffset_floats.hpp"

namespace tamis::filters::scaleoffset {

namespace detail {

// Call `f` with the class that knows the values.
template <class F>
inline auto specialise(const Params& params, F f) {
    const auto with_integers = [&]<class Signed>() {
        return params.is_signed ? f(Integers<Signed>(params)) : f(Integers<std::make_unsigned_t<Signed>>(params));
    };
    if (params.is_float) return params.nbytes == 4 ? f(Floats<float>(params)) : f(Floats<double>(params));
    switch (params.nbytes) {
        case 1:
            return with_integers.template operator()<std::int8_t>();
        case 2:
            return with_integers.template operator()<std::int16_t>();
        case 4:
            return with_integers.template operator()<std::int32_t>();
        default:
            return with_integers.template operator()<std::int64_t>();
    }
}

template <class Codec>
inline typename Codec::Value value_at(const std::uint8_t* in, std::size_t index, bool big) {
    using Word = typename Codec::Word;
    return std::bit_cast<typename Codec::Value>(load_ordered<Word>(in + index * sizeof(Word), big));
}

// Bytes that `minbits` of each item fill; no more than the chunk has.
inline std::size_t packed_nbytes(const Params& params, unsigned minbits) {
    return static_cast<std::size_t>((std::uint64_t{params.items} * minbits + 7) / 8);
}

// Items of another byte order; the filter stores what it does not pack in the machine's, which is little-endian here.
inline void copy_items(const Params& params, const std::uint8_t* in, std::uint8_t* out) {
    if (!params.big) {
        std::copy(in, in + params.chunk_nbytes(), out);
        return;
    }
    for (std::size_t i = 0; i < params.chunk_nbytes(); i += params.nbytes)
        std::reverse_copy(in + i, in + i + params.nbytes, out + i);
}

}  // namespace detail

// What `encode` will do with a chunk, which is not verbatim.
struct Plan {
    Header header;
    std::size_t encoded_nbytes = 0;
};

inline Status plan(const Params& params, const std::uint8_t* in, Plan& plan) {
    return detail::specialise(params, [&]<class Codec>(Codec codec) -> Status {
        for (std::size_t i = 0; i < params.items; ++i) codec.see(detail::value_at<Codec>(in, i, params.big));
        plan.header = codec.header(params);
        const bool full = plan.header.minbits == params.nbits();
        const std::uint64_t nbits = std::uint64_t{params.items} * plan.header.minbits;
        plan.encoded_nbytes = header_nbytes + static_cast<std::size_t>(nbits / 8) + !full;  // as libhdf5 counts
        if constexpr (std::is_floating_point_v<typename Codec::Value>) {
            for (std::size_t i = 0; !full && i < params.items; ++i)
                if (codec.refuses(detail::value_at<Codec>(in, i, params.big))) return {Code::non_finite, i};
        }
        return {};
    });
}

// `out` has the encoded_nbytes of the plan. Safe even where somebody changed `in` since: only the bytes are then odd.
inline void encode(const Params& params, const Plan& plan, const std::uint8_t* in, std::span<std::uint8_t> out) {
    write_header(plan.header, out.data());
    const unsigned minbits = plan.header.minbits;
    const auto body = out.subspan(header_nbytes);
    if (minbits == params.nbits()) return detail::copy_items(params, in, body.data());
    const Header header = plan.header;
    const std::size_t items = params.items;
    const bool big = params.big;
    // By value, here and below: the compiler would read it again for each item, in case a written byte is part of it.
    detail::specialise(params, [=]<class Codec>(Codec codec) {
        BitWriter bits(body.data());
        codec.begin(header);
        const std::uint64_t mask = low_bits(minbits);
        for (std::size_t i = 0; i < items; ++i)
            bits.put(codec.code(detail::value_at<Codec>(in, i, big), minbits) & mask, minbits);
        bits.finish(body.data() + body.size());
    });
}

// Reads the header, and whether all bytes that it tells of are there.
inline Status open(const Params& params, std::span<const std::uint8_t> in, Header& header) {
    if (const Status status = read_header(in, params, header); !status) return status;
    const std::size_t needed = header_nbytes + detail::packed_nbytes(params, header.minbits);
    return in.size() < needed ? Status{Code::truncated, needed} : Status{};
}

// `out` has the bytes of an unfiltered chunk, and `in` was opened. Bytes behind the last bit are not looked at.
inline void decode(const Params& params, const Header& header, std::span<const std::uint8_t> in, std::uint8_t* out) {
    const auto body = in.subspan(header_nbytes);
    if (header.minbits == params.nbits()) return detail::copy_items(params, body.data(), out);
    const std::size_t items = params.items;
    const bool big = params.big;
    detail::specialise(params, [=]<class Codec>(Codec codec) {
        using Word = typename Codec::Word;
        BitReader bits(body);
        codec.begin(header);
        for (std::size_t i = 0; i < items; ++i) {
            const auto value = codec.value(bits.get(header.minbits), header.minbits);
            store_ordered(out + i * sizeof(Word), std::bit_cast<Word>(value), big);
        }
    });
}

}  // namespace tamis::filters::scaleoffset
