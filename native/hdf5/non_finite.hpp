// Chunks with NaN or infinities as H5Z-ZFP writes them, for those who ask for them: settings.hpp.
#pragma once

#include "tamis/zfp/stream.hpp"

namespace tamis::hdf5 {

// As Kernel::encode, of floats in a lossy mode.
zfp::Status encode_non_finite(zfp::Type type, const void* data, const zfp::Layout& layout, const zfp::Params& params,
                              std::uint8_t* out, std::size_t& end);

}  // namespace tamis::hdf5
