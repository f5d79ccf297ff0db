// The kernel in plain C++: stream.hpp as it stands, for every type and rank.

#include "tamis/zfp/codec.hpp"

namespace tamis::zfp {

namespace {

// Call `f` with a value of the scalar type.
template <class F>
Status with_scalar(Type type, F f) {
    switch (type) {
        case Type::int32:
            return f(std::int32_t{});
        case Type::int64:
            return f(std::int64_t{});
        case Type::float32:
            return f(float{});
        case Type::float64:
            return f(double{});
    }
    return {Code::not_a_header};
}

Status encode(Type type, const void* data, const Layout& layout, const Params& params, std::uint8_t* out,
              std::size_t start, std::size_t& end) {
    return with_scalar(type, [&](auto scalar) -> Status {
        const auto* values = static_cast<const decltype(scalar)*>(data);
        switch (layout.rank) {
            case 1:
                return encode_array<decltype(scalar), 1>(values, layout, params, out, start, end);
            case 2:
                return encode_array<decltype(scalar), 2>(values, layout, params, out, start, end);
            case 3:
                return encode_array<decltype(scalar), 3>(values, layout, params, out, start, end);
            default:
                return encode_array<decltype(scalar), 4>(values, layout, params, out, start, end);
        }
    });
}

Status decode(Type type, void* data, const Layout& layout, const Params& params, std::span<const std::uint8_t> in,
              std::size_t start, std::size_t& end) {
    return with_scalar(type, [&](auto scalar) -> Status {
        auto* values = static_cast<decltype(scalar)*>(data);
        switch (layout.rank) {
            case 1:
                return decode_array<decltype(scalar), 1>(values, layout, params, in, start, end);
            case 2:
                return decode_array<decltype(scalar), 2>(values, layout, params, in, start, end);
            case 3:
                return decode_array<decltype(scalar), 3>(values, layout, params, in, start, end);
            default:
                return decode_array<decltype(scalar), 4>(values, layout, params, in, start, end);
        }
    });
}

}  // namespace

const Kernel portable_kernel{"portable", encode, decode};

}  // namespace tamis::zfp
