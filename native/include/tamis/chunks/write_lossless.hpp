// Chunks encoded without loss, decoded again and compared, many in a row.
#pragma once

#include "tamis/chunks/pipeline.hpp"
#include "tamis/chunks/write.hpp"

namespace tamis::chunks {

// Encodes chunks of any bytes, one after the other, by all filters.
class LosslessWriter {
public:
    // `pipeline.encodes_bytes()`.
    LosslessWriter(const Pipeline& pipeline, const zfp::Kernel& kernel)
        : pipeline_(pipeline),
          kernel_(kernel),
          values_(zfp::raw_memory(pipeline.nbytes())),
          work_(pipeline.capacity()),
          scratch_(pipeline.capacity()),
          inflater_(pipeline.libdeflate()) {}

    explicit operator bool() const { return values_ && work_ && scratch_; }

    // Encode the chunk at `origin` of an array, if all of it lies in `place`. Its bytes follow those that `out` has.
    Encoded encode(const Place<const std::uint8_t>& place, std::span<const std::int64_t> origin,
                   std::vector<std::uint8_t>& out) {
        Share share;
        if (!find_share(place, origin, pipeline_.shape(), pipeline_.strides(), share)) return {};
        if (share.shape != pipeline_.shape()) return {};
        copy_box(share.shape, pipeline_.itemsize(), place.memory + share.in_place, place.strides, values_.get(),
                 pipeline_.strides());
        const Bytes values{values_.get(), pipeline_.nbytes()};
        Bytes bytes = values;
        for (const Stage& stage : pipeline_.stages())
            if (!apply(stage, bytes)) return {};
        Encoded encoded{out.size(), bytes.size(), 0, 0, true};
        out.insert(out.end(), bytes.begin(), bytes.end());
        const auto decoded =
            pipeline_.decode(kernel_, {out.data() + encoded.offset, encoded.nbytes}, 0, scratch_, inflater_);
        if (decoded && std::memcmp(decoded->data(), values.data(), values.size()) == 0) return encoded;
        out.resize(encoded.offset);
        return {};
    }

private:
    bool apply(const Stage& stage, Bytes& bytes) {
        std::uint8_t* to = work_.next();
        std::size_t nbytes = bytes.size();
        if (stage.kind == Kind::shuffle) {
            filters::shuffle(bytes, stage.itemsize, to);
        } else if (stage.kind == Kind::fletcher32) {
            if (nbytes + checksum_nbytes > work_.capacity()) return false;
            std::copy(bytes.begin(), bytes.end(), to);
            zfp::store_le32(to + nbytes, filters::fletcher32(bytes));
            nbytes += checksum_nbytes;
        } else if (stage.kind == Kind::szip) {
            // HDF5 leaves the filter out where it makes nothing smaller: so does the caller.
            const std::span<std::uint8_t> out{to + szip::size_nbytes, bytes.size()};
            if (!szip::encode(szip::kernel_like(kernel_.name), stage.pixels, bytes, out, nbytes)) return false;
            zfp::store_le32(to, static_cast<std::uint32_t>(bytes.size()));
            nbytes += szip::size_nbytes;
        } else if (nbytes = deflater_of(pipeline_.libdeflate(), stage.level)(bytes, to, work_.capacity());
                   nbytes == 0) {
            return false;
        }
        bytes = {to, nbytes};
        return true;
    }

    const Pipeline& pipeline_;
    const zfp::Kernel& kernel_;
    zfp::RawMemory values_;
    Scratch work_, scratch_;
    Inflater inflater_;
};

}  // namespace tamis::chunks
