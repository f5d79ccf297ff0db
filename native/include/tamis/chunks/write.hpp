// Chunks of floats encoded by zfp, decoded again and compared, many in a row.
#pragma once

#include "tamis/chunks/pipeline.hpp"
#include "tamis/values/difference.hpp"

namespace tamis::chunks {

// What must hold of a chunk that is decoded again.
template <class Scalar>
struct Terms {
    std::span<const Scalar> marks;  // of missing values: none becomes one, and none stops being one
    Scalar low, high;               // of valid values: chunks that are not inside, before and after, are refused
    double bound;                   // of the error
    bool exact;                     // every bit is what it was; then nothing else matters
};

// The filters that are not applied to a chunk behind zfp, and its terms, whatever the type of its values.
struct Loss {
    std::uint32_t mask = 0;
    std::span<const std::uint8_t> marks;  // the bytes of values of that type
    double low = 0, high = 0, bound = 0;
    bool exact = false;

    // Of the type of the marks, whose memory is aligned for it.
    template <class Scalar>
    Terms<Scalar> terms() const {
        const auto* values = reinterpret_cast<const Scalar*>(marks.data());
        return {
            {values, marks.size() / sizeof(Scalar)}, static_cast<Scalar>(low), static_cast<Scalar>(high), bound, exact};
    }
};

// What became of a chunk.
struct Encoded {
    std::size_t offset = 0, nbytes = 0;  // of its bytes
    double error = 0;
    std::size_t missing = 0;
    bool kept = false;  // false where it was refused, and there are no bytes
};

// Encodes chunks, one after the other.
template <class Scalar>
class Writer {
public:
    // `pipeline.encodes(loss.mask)`, and its values are of this type.
    Writer(const Pipeline& pipeline, const zfp::Kernel& kernel, const Loss& loss)
        : pipeline_(pipeline),
          kernel_(kernel),
          mask_(loss.mask),
          terms_(loss.terms<Scalar>()),
          capacity_(zfp::encode_capacity(header(pipeline).type, header(pipeline).layout, header(pipeline).params, 0)),
          values_(zfp::raw_memory(pipeline.nbytes())),
          decoded_(zfp::raw_memory(pipeline.nbytes())),
          stream_(zfp::raw_memory(capacity_ + max_stages * checksum_nbytes)),
          spare_(zfp::raw_memory(capacity_ + max_stages * checksum_nbytes)) {}

    explicit operator bool() const { return capacity_ != 0 && values_ && decoded_ && stream_ && spare_; }

    // Encode the chunk at `origin` of an array, if all of it lies in `place`. Its bytes follow those that `out` has.
    Encoded encode(const Place<const std::uint8_t>& place, std::span<const std::int64_t> origin,
                   std::vector<std::uint8_t>& out) {
        Share share;
        if (!find_share(place, origin, pipeline_.shape(), pipeline_.strides(), share)) return {};
        if (share.shape != pipeline_.shape()) return {};
        copy_box(share.shape, sizeof(Scalar), place.memory + share.in_place, place.strides, values_.get(),
                 pipeline_.strides());
        const auto& [type, layout, params, nbits] = header(pipeline_);
        std::size_t end = 0;
        if (!kernel_.encode(type, values_.get(), layout, params, stream_.get(), 0, end)) return {};
        std::size_t nbytes = (end + 7) / 8;
        if (!kernel_.decode(type, decoded_.get(), layout, params, {stream_.get(), nbytes}, 0, end)) return {};
        Encoded encoded = compare(reinterpret_cast<const Scalar*>(values_.get()),
                                  reinterpret_cast<const Scalar*>(decoded_.get()), share.shape.count());
        if (!encoded.kept) return {};
        pipeline_.encode_rest(stream_.get(), nbytes, mask_, spare_.get());
        encoded.offset = out.size();
        encoded.nbytes = nbytes;
        out.insert(out.end(), stream_.get(), stream_.get() + nbytes);
        return encoded;
    }

private:
    static const zfp::Header& header(const Pipeline& pipeline) { return pipeline.stages()[0].header; }

    Encoded compare(const Scalar* before, const Scalar* after, std::size_t count) const {
        const std::span<const Scalar> was(before, count), now(after, count);
        Encoded encoded;
        if (terms_.exact) {
            encoded.kept = std::memcmp(before, after, count * sizeof(Scalar)) == 0;
            return encoded;
        }
        const values::Difference difference = values::compare(was, now, terms_.marks);
        encoded.error = difference.error;
        encoded.missing = difference.missing;
        encoded.kept = difference.kept && difference.error <= terms_.bound && is_inside(was) && is_inside(now);
        return encoded;
    }

    bool is_inside(std::span<const Scalar> values) const {
        bool outside = false;
        for (const Scalar value : values) outside |= value < terms_.low || value > terms_.high;
        return !outside;
    }

    const Pipeline& pipeline_;
    const zfp::Kernel& kernel_;
    std::uint32_t mask_;
    Terms<Scalar> terms_;
    std::size_t capacity_;
    zfp::RawMemory values_, decoded_, stream_, spare_;
};

}  // namespace tamis::chunks
