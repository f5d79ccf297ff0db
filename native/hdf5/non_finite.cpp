#include "hdf5/non_finite.hpp"

#include "tamis/zfp/non_finite.hpp"

namespace tamis::hdf5 {

namespace {

template <class Scalar, unsigned rank>
zfp::Status encode_rank(const void* data, const zfp::Layout& layout, const zfp::Params& params, std::uint8_t* out,
                        std::size_t& end) {
    using Codec = zfp::NonFiniteCodec<Scalar, rank>;
    return zfp::encode_array<Codec, Scalar, rank>(static_cast<const Scalar*>(data), layout, params, out, 0, end);
}

template <class Scalar, class... Arguments>
zfp::Status encode_floats(unsigned rank, Arguments&&... arguments) {
    switch (rank) {
        case 1:
            return encode_rank<Scalar, 1>(arguments...);
        case 2:
            return encode_rank<Scalar, 2>(arguments...);
        case 3:
            return encode_rank<Scalar, 3>(arguments...);
        default:
            return encode_rank<Scalar, 4>(arguments...);
    }
}

}  // namespace

zfp::Status encode_non_finite(zfp::Type type, const void* data, const zfp::Layout& layout, const zfp::Params& params,
                              std::uint8_t* out, std::size_t& end) {
    return type == zfp::Type::float32 ? encode_floats<float>(layout.rank, data, layout, params, out, end)
                                      : encode_floats<double>(layout.rank, data, layout, params, out, end);
}

}  // namespace tamis::hdf5
