// The filters of a chunk, as far as they are native: a chunk's bytes from what is stored of it, and back.
//
// Nothing here says what is wrong with a chunk. The caller then takes the slow way, which does.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "tamis/chunks/box.hpp"
#include "tamis/chunks/deflate.hpp"
#include "tamis/filters/fletcher32.hpp"
#include "tamis/filters/shuffle.hpp"
#include "tamis/hdf5/cd_values.hpp"
#include "tamis/szip/codec.hpp"
#include "tamis/zfp/codec.hpp"
#include "tamis/zfp/memory.hpp"

namespace tamis::chunks {

using Bytes = std::span<const std::uint8_t>;

enum class Kind { foreign, zfp, shuffle, fletcher32, deflate, szip };

struct Stage {
    Kind kind = Kind::foreign;
    std::size_t itemsize = 0;  // of shuffle
    int level = 0;             // of deflate
    zfp::Header header;        // of zfp
    bool swapped = false;      // of zfp: the file is of a machine of the other byte order
    szip::Params pixels;       // of szip
};

// HDF5's numbers of filters.
inline constexpr int deflate_id = 1, shuffle_id = 2, fletcher32_id = 3, szip_id = 4, zfp_id = 32013;

inline constexpr std::size_t max_stages = 32;  // the bits of a mask
inline constexpr unsigned most_level = 9;      // of deflate
inline constexpr int unknown_level = -1;
inline constexpr std::size_t checksum_nbytes = 4;  // of fletcher32

// What filters add to a chunk that they make no smaller: zfp up to its longest blocks, beside headers and checksums.
inline constexpr std::size_t room_nbytes = 4 * (zfp::max_bits / 8 + 1);

// Memory of a thread: two places for the bytes of a chunk on their way, from one to the other.
class Scratch {
public:
    explicit Scratch(std::size_t capacity)
        : capacity_(capacity), memory_{zfp::raw_memory(capacity), zfp::raw_memory(capacity)} {}

    explicit operator bool() const { return memory_[0] && memory_[1]; }
    std::size_t capacity() const { return capacity_; }
    // The one that does not hold what was returned last.
    std::uint8_t* next() { return memory_[turn_ = 1 - turn_].get(); }

private:
    std::size_t capacity_;
    zfp::RawMemory memory_[2];
    unsigned turn_ = 0;
};

class Pipeline {
public:
    // Of chunks of a shape, which has an axis, and whose bytes fit in memory.
    Pipeline(const Shape& shape, std::size_t itemsize, const Libdeflate& libdeflate)
        : shape_(shape), itemsize_(itemsize), strides_(shape.contiguous(itemsize)), libdeflate_(libdeflate) {}

    // Add a filter with the parameters that the file has.
    void add(int id, hdf5::CdValues values) {
        stages_.push_back(stage_of(id, values));
        if (stages_.back().kind == Kind::foreign) foreign_ |= 1u << (stages_.size() - 1);
    }

    const Shape& shape() const { return shape_; }
    std::size_t itemsize() const { return itemsize_; }
    std::size_t nbytes() const { return itemsize_ * shape_.count(); }
    const Strides& strides() const { return strides_; }
    const std::vector<Stage>& stages() const { return stages_; }
    const Libdeflate& libdeflate() const { return libdeflate_; }

    // Bits of the filters that only others can undo.
    std::uint32_t foreign() const { return foreign_; }

    // Of a chunk on its way; longer ones are not taken.
    std::size_t capacity() const { return 2 * nbytes() + room_nbytes; }

    // The values of a chunk: in `stored`, in `scratch`, whose capacity is at least that of the pipeline, or in
    // `values`, which has room for them or is null. None where the chunk is damaged, or went through a foreign filter.
    std::optional<Bytes> decode(const zfp::Kernel& kernel, Bytes stored, std::uint32_t mask, Scratch& scratch,
                                Inflater& inflater, std::uint8_t* values = nullptr) const {
        const auto last = static_cast<std::size_t>(std::countr_one(mask));
        for (std::size_t i = stages_.size(); i-- > 0;) {
            if (mask >> i & 1) continue;
            const auto room = [&] {  // asked for by the filters that need any
                const bool direct = i == last && values != nullptr;
                return direct ? std::span(values, nbytes()) : std::span(scratch.next(), scratch.capacity());
            };
            if (!undo(stages_[i], kernel, stored, room, inflater)) return std::nullopt;
        }
        return stored.size() == nbytes() ? std::optional(stored) : std::nullopt;
    }

    // Whether the streams of zfp, as the first filter, can go through all other filters except those of the mask.
    bool encodes(std::uint32_t mask) const {
        if (stages_.empty() || stages_[0].kind != Kind::zfp || stages_[0].swapped || mask & 1) return false;
        for (std::size_t i = 1; i < stages_.size(); ++i)
            if (!(mask >> i & 1) && stages_[i].kind != Kind::shuffle && stages_[i].kind != Kind::fletcher32)
                return false;
        return true;
    }

    // Whether all filters can be applied to a chunk, and none of them loses anything.
    bool encodes_bytes() const {
        return std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
            return stage.kind == Kind::shuffle || stage.kind == Kind::fletcher32 || stage.kind == Kind::szip ||
                   (stage.kind == Kind::deflate && stage.level != unknown_level);
        });
    }

    // Apply the filters behind zfp to its stream; it has room for their bytes, and so has `scratch`.
    void encode_rest(std::uint8_t* stream, std::size_t& nbytes, std::uint32_t mask, std::uint8_t* scratch) const {
        for (std::size_t i = 1; i < stages_.size(); ++i) {
            if (mask >> i & 1) continue;
            if (stages_[i].kind == Kind::shuffle) {
                filters::shuffle({stream, nbytes}, stages_[i].itemsize, scratch);
                std::copy_n(scratch, nbytes, stream);
            } else {
                zfp::store_le32(stream + nbytes, filters::fletcher32({stream, nbytes}));
                nbytes += checksum_nbytes;
            }
        }
    }

private:
    Stage stage_of(int id, hdf5::CdValues values) const {
        Stage stage;
        if (id == fletcher32_id) {
            stage.kind = Kind::fletcher32;
        } else if (id == shuffle_id && values.size() == 1) {
            stage.itemsize = values[0] != 0 ? values[0] : itemsize_;  // NCZarr writes 0
            if (filters::check_itemsize(stage.itemsize)) stage.kind = Kind::shuffle;
        } else if (id == deflate_id && libdeflate_) {
            stage.kind = Kind::deflate;
            stage.level = values.size() == 1 && values[0] <= most_level ? static_cast<int>(values[0]) : unknown_level;
        } else if (id == szip_id && szip::parse(values, stage.pixels)) {
            stage.kind = Kind::szip;
        } else if (id == zfp_id && hdf5::is_stored(values)) {
            hdf5::Stored stored;
            if (hdf5::parse_stored(values, stored) && hdf5::chunk_nbytes(stored.header) == nbytes()) {
                stage.kind = Kind::zfp;
                stage.header = stored.header;
                stage.swapped = stored.swapped;
            }
        }
        return stage;
    }

    template <class Room>
    bool undo(const Stage& stage, const zfp::Kernel& kernel, Bytes& bytes, const Room& room, Inflater& inflater) const {
        switch (stage.kind) {
            case Kind::fletcher32:
                return check(bytes);
            case Kind::shuffle: {
                const std::span<std::uint8_t> out = room();
                if (bytes.size() > out.size()) return false;
                filters::unshuffle(bytes, stage.itemsize, out.data());
                bytes = out.first(bytes.size());
                return true;
            }
            case Kind::deflate: {
                const std::span<std::uint8_t> out = room();
                std::size_t nbytes = 0;
                if (!inflater(bytes, out.data(), out.size(), nbytes)) return false;
                bytes = out.first(nbytes);
                return true;
            }
            case Kind::szip: {
                const std::span<std::uint8_t> out = room();
                if (bytes.size() < szip::size_nbytes) return false;
                const std::size_t nbytes = zfp::load_le<std::uint32_t>(bytes.data());
                if (nbytes > out.size()) return false;
                if (!szip::decode(szip::kernel_like(kernel.name), stage.pixels, bytes.subspan(szip::size_nbytes),
                                  out.first(nbytes)))
                    return false;
                bytes = out.first(nbytes);
                return true;
            }
            case Kind::zfp: {
                std::uint8_t* out = room().data();
                std::size_t end = 0;
                if (!kernel.decode(stage.header.type, out, stage.header.layout, stage.header.params, bytes, 0, end))
                    return false;
                if (stage.swapped) swap_bytes(out, zfp::item_nbytes(stage.header.type));
                bytes = {out, nbytes()};
                return true;
            }
            case Kind::foreign:
                break;
        }
        return false;
    }

    // Drop a checksum that is right, or was written by HDF5 before 1.6.3: with the bytes of each half exchanged.
    static bool check(Bytes& bytes) {
        if (bytes.size() < checksum_nbytes) return false;
        const Bytes plain = bytes.first(bytes.size() - checksum_nbytes);
        const auto written = zfp::load_le<std::uint32_t>(plain.data() + plain.size());
        const std::uint32_t sum = filters::fletcher32(plain);
        bytes = plain;
        return written == sum || written == ((sum & 0xff00ff) << 8 | (sum >> 8 & 0xff00ff));
    }

    void swap_bytes(std::uint8_t* values, std::size_t size) const {
        for (std::size_t at = 0; at < nbytes(); at += size) std::reverse(values + at, values + at + size);
    }

    Shape shape_;
    std::size_t itemsize_;
    Strides strides_;
    const Libdeflate& libdeflate_;
    std::vector<Stage> stages_;
    std::uint32_t foreign_ = 0;
};

}  // namespace tamis::chunks
