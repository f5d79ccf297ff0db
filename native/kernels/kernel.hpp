// A kernel out of a family of codecs: `Family::Codec<Scalar, rank, reversible>` codes blocks, stream.hpp arrays of
// them.
//
// A family is a type of the kernel's own file, so that no two instruction sets share an instantiation.
#pragma once

#include "tamis/zfp/codec.hpp"

namespace tamis::zfp::detail {

// Call `f` with type, rank and reversibility as template arguments.
template <class F>
auto specialise(Type type, unsigned axes, const Params& params, F f) {
    const auto with_rank = [&]<class Scalar, bool reversible>() {
        switch (axes) {
            case 1:
                return f.template operator()<Scalar, 1, reversible>();
            case 2:
                return f.template operator()<Scalar, 2, reversible>();
            case 3:
                return f.template operator()<Scalar, 3, reversible>();
            default:
                return f.template operator()<Scalar, 4, reversible>();
        }
    };
    const auto with_scalar = [&]<class Scalar>() {
        return params.reversible() ? with_rank.template operator()<Scalar, true>()
                                   : with_rank.template operator()<Scalar, false>();
    };
    switch (type) {
        case Type::int32:
            return with_scalar.template operator()<std::int32_t>();
        case Type::int64:
            return with_scalar.template operator()<std::int64_t>();
        case Type::float32:
            return with_scalar.template operator()<float>();
        default:
            return with_scalar.template operator()<double>();
    }
}

template <class Family>
Status encode(Type type, const void* data, const Layout& layout, const Params& params, std::uint8_t* out,
              std::size_t start, std::size_t& end) {
    return specialise(type, layout.rank, params, [&]<class Scalar, unsigned rank, bool reversible>() {
        using Codec = typename Family::template Codec<Scalar, rank, reversible>;
        return encode_array<Codec, Scalar, rank>(static_cast<const Scalar*>(data), layout, params, out, start, end);
    });
}

template <class Family>
Status decode(Type type, void* data, const Layout& layout, const Params& params, std::span<const std::uint8_t> in,
              std::size_t start, std::size_t& end) {
    return specialise(type, layout.rank, params, [&]<class Scalar, unsigned rank, bool reversible>() {
        using Codec = typename Family::template Codec<Scalar, rank, reversible>;
        return decode_array<Codec, Scalar, rank>(static_cast<Scalar*>(data), layout, params, in, start, end);
    });
}

template <class Family>
std::size_t walk(Type type, unsigned axes, const Params& params, std::span<const std::uint8_t> in, std::size_t start,
                 std::span<std::size_t> ends) {
    return specialise(type, axes, params, [&]<class Scalar, unsigned rank, bool reversible>() {
        using Codec = typename Family::template Codec<Scalar, rank, reversible>;
        return walk_blocks<Codec, Scalar, rank>(params, in, start, ends);
    });
}

template <class Family>
constexpr Kernel kernel_of(const char* name) {
    return {name, encode<Family>, decode<Family>, walk<Family>};
}

}  // namespace tamis::zfp::detail
