// A small dataset stored anew in another file, through other filters that lose nothing or are proven to keep a bound.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "tamis/chunks/write.hpp"
#include "tamis/chunks/write_lossless.hpp"
#include "tamis/datasets/attributes.hpp"

namespace tamis::datasets {

// How the copy of a dataset is created: in what group, and by what properties of its link and of itself.
struct Creation {
    hid_t parent;
    const char* name;
    hid_t link, type, properties;
};

// An attribute that only the copy has.
struct NewAttribute {
    const char* name;
    hid_t type, space;
    const void* values;
};

// A chunk of a copy.
struct NewChunk {
    std::array<hsize_t, chunks::max_axes> origin{};
    chunks::Encoded encoded;
    std::uint32_t checksum = 0;  // CRC-32 of its bytes
    std::int64_t offset = 0;     // in the file, as HDF5 records it
};

enum class Rewritten { done, nothing, some };

// Writes the copy of one dataset.
class Rewriter {
public:
    // The source has been surveyed; `pipeline` is that of the copy, and has the type of its values.
    Rewriter(const Libhdf5& hdf5, const SmallDataset& source, const chunks::Pipeline& pipeline)
        : hdf5_(hdf5), source_(source), pipeline_(pipeline) {}

    // Encode all chunks, and decode them again: without loss, or by zfp as its terms allow. False if not all values are
    // stored in the source, a chunk ends beyond the array or breaks the terms, or the chunks are many or take more than
    // `most_nbytes`.
    bool encode(const Memory& values, const zfp::Kernel& kernel, std::size_t most_nbytes,
                const chunks::Loss* loss = nullptr) {
        if (!pipeline_.libdeflate() || !source_.is_complete() || source_.shape().rank != pipeline_.shape().rank ||
            source_.itemsize() != pipeline_.itemsize() || !place_chunks())
            return false;
        if (loss == nullptr)
            return pipeline_.encodes_bytes() &&
                   encode_by(chunks::LosslessWriter(pipeline_, kernel), values, most_nbytes);
        mask_ = loss->mask;
        if (!pipeline_.encodes(mask_)) return false;
        const zfp::Type type = pipeline_.stages()[0].header.type;
        if (type == zfp::Type::float32 && source_.itemsize() == sizeof(float))
            return encode_by(chunks::Writer<float>(pipeline_, kernel, *loss), values, most_nbytes);
        if (type == zfp::Type::float64 && source_.itemsize() == sizeof(double))
            return encode_by(chunks::Writer<double>(pipeline_, kernel, *loss), values, most_nbytes);
        return false;
    }

    // Create the dataset, write its chunks, compare HDF5's records of them, add new attributes, and copy the others if
    // that is simple. Nothing is there if HDF5 creates no such dataset, or the source has an attribute of that name;
    // some of it, if HDF5 then fails.
    Rewritten write(const Creation& creation, std::int64_t base, std::span<const NewAttribute> added = {}) {
        Names names;
        if (!added.empty() && !attribute_names(hdf5_, source_.id(), names)) return Rewritten::nothing;
        for (const NewAttribute& attribute : added)
            for (const AttributeName& other : names)
                if (other.name == attribute.name) return Rewritten::nothing;
        const chunks::Shape& shape = source_.shape();
        hsize_t extents[chunks::max_axes];
        std::copy_n(shape.extent.begin(), shape.rank, extents);
        const Id space(hdf5_.create_space(static_cast<int>(shape.rank), extents, source_.maxima().data()),
                       hdf5_.close_space);
        if (!space.valid() || hdf5_.types_equal(source_.type(), creation.type) <= 0) return Rewritten::nothing;
        const Id copy(hdf5_.create(creation.parent, creation.name, creation.type, space, creation.link,
                                   creation.properties, none),
                      hdf5_.close);
        if (!copy.valid()) return Rewritten::nothing;
        for (NewChunk& chunk : chunks_) {
            const std::uint8_t* bytes = bytes_.data() + chunk.encoded.offset;
            chunk.checksum = pipeline_.libdeflate().crc32(0, bytes, chunk.encoded.nbytes);
            if (hdf5_.write_chunk(copy, none, mask_, chunk.origin.data(), chunk.encoded.nbytes, bytes) < 0)
                return Rewritten::some;
        }
        if (!is_recorded(copy, base)) return Rewritten::some;
        for (const NewAttribute& attribute : added) {
            const Id id(hdf5_.create_attribute(copy, attribute.name, attribute.type, attribute.space, none, none),
                        hdf5_.close_attribute);
            if (!id.valid() || hdf5_.write_attribute(id, attribute.type, attribute.values) < 0) return Rewritten::some;
        }
        attributes_ = copy_attributes(hdf5_, source_.id(), copy);
        return attributes_ == Copied::some ? Rewritten::some : Rewritten::done;
    }

    const std::vector<NewChunk>& chunks() const { return chunks_; }
    // Whether the copy has all attributes, and the source no comment.
    bool has_attributes() const { return attributes_ == Copied::all; }

private:
    template <class Writer>
    bool encode_by(Writer writer, const Memory& values, std::size_t most_nbytes) {
        const chunks::Shape& shape = source_.shape();
        const chunks::Place<const std::uint8_t> place{values.data(), shape, shape.contiguous(source_.itemsize()), {}};
        if (!writer) return false;
        for (NewChunk& chunk : chunks_) {
            std::array<std::int64_t, chunks::max_axes> origin{};
            std::copy_n(chunk.origin.begin(), shape.rank, origin.begin());
            chunk.encoded = writer.encode(place, std::span(origin).first(shape.rank), bytes_);
            if (!chunk.encoded.kept) return false;
        }
        return bytes_.size() <= most_nbytes;
    }

    // List the chunks in the order of their numbers.
    bool place_chunks() {
        const chunks::Shape &shape = source_.shape(), &step = pipeline_.shape();
        std::size_t count = 1;
        for (unsigned axis = 0; axis < shape.rank; ++axis) {
            if (step.extent[axis] == 0 || shape.extent[axis] % step.extent[axis] != 0) return false;
            count *= shape.extent[axis] / step.extent[axis];  // of at most `max_nbytes` values
        }
        if (count > max_chunks) return false;
        chunks_.resize(count);
        for (std::size_t number = 0; number < count; ++number) {
            std::size_t rest = number;
            for (unsigned axis = shape.rank; axis-- > 0;) {
                const std::size_t along = shape.extent[axis] / step.extent[axis];
                chunks_[number].origin[axis] = rest % along * step.extent[axis];
                rest /= along;
            }
        }
        return true;
    }

    // Whether HDF5 records the chunks as they were written, and no others.
    bool is_recorded(hid_t copy, std::int64_t base) {
        hsize_t count = 0;
        if (hdf5_.chunk_count(copy, none, &count) < 0 || count != chunks_.size()) return false;
        std::size_t matching = 0;
        for (hsize_t i = 0; i < count; ++i) {
            std::array<hsize_t, chunks::max_axes> origin{};
            hsize_t nbytes = 0;
            std::uint64_t address = 0;
            unsigned mask = 0;
            if (hdf5_.chunk_at(copy, none, i, origin.data(), &mask, &address, &nbytes) < 0) return false;
            const auto chunk = std::find_if(chunks_.begin(), chunks_.end(),
                                            [&](const NewChunk& chunk) { return chunk.origin == origin; });
            if (chunk == chunks_.end() || mask != mask_ || nbytes != chunk->encoded.nbytes || chunk->offset != 0)
                return false;
            chunk->offset = static_cast<std::int64_t>(address) + base;
            ++matching;
        }
        return matching == chunks_.size();
    }

    const Libhdf5& hdf5_;
    const SmallDataset& source_;
    const chunks::Pipeline& pipeline_;
    std::uint32_t mask_ = 0;
    std::vector<NewChunk> chunks_;
    Memory bytes_;
    Copied attributes_ = Copied::nothing;
};

}  // namespace tamis::datasets
