// Small datasets of an HDF5 that tells the truth, or does not: sizes, counts, indexes and identifiers that lie.
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "check.hpp"
#include "random.hpp"
#include "tamis/datasets/chunk_records.hpp"
#include "tamis/datasets/groups.hpp"
#include "tamis/datasets/rewrite.hpp"
#include "tamis/system/scratch_file.hpp"

namespace tamis::tests {

// A "deflate" that adds a byte in front.
inline const chunks::Libdeflate fake_libdeflate{
    [] { return static_cast<void*>(new char); },
    [](void* state) { delete static_cast<char*>(state); },
    [](void*, const void* in, std::size_t in_nbytes, void* out, std::size_t room, std::size_t* nbytes) {
        if (in_nbytes == 0 || in_nbytes - 1 > room || *static_cast<const char*>(in) != 'z') return 1;
        std::memcpy(out, static_cast<const char*>(in) + 1, *nbytes = in_nbytes - 1);
        return 0;
    },
    [](int) { return static_cast<void*>(new char); },
    [](void* state) { delete static_cast<char*>(state); },
    [](void*, const void* in, std::size_t in_nbytes, void* out, std::size_t room) {
        if (in_nbytes + 1 > room) return std::size_t{0};
        *static_cast<char*>(out) = 'z';
        std::memcpy(static_cast<char*>(out) + 1, in, in_nbytes);
        return in_nbytes + 1;
    },
    [](std::uint32_t, const void*, std::size_t nbytes) { return static_cast<std::uint32_t>(nbytes); }};

// One dataset in two chunks, as many as it has rows / 2, and its copy. Identifiers are numbers of kinds of objects.
class FakeDataset {
public:
    explicit FakeDataset(Random& random) : random_(random), hdf5_("absent"), honest_(random.one_in(4)) {
        require(file_.number() >= 0, "a file can be made");
        now = this;
        for (std::size_t i = 0; i < rows * columns; ++i) {
            const auto value = static_cast<float>(random.between(-1000, 1000));
            const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
            values_.insert(values_.end(), bytes, bytes + itemsize);
        }
        require(file_.hold(values_), "it is kept");
        bind_datasets();
        bind_types_and_spaces();
        bind_properties();
        bind_attributes();
        bind_groups();
    }
    FakeDataset(const FakeDataset&) = delete;
    FakeDataset& operator=(const FakeDataset&) = delete;

    void check() {
        {
            datasets::SmallDataset source(hdf5_, file_id, "v");
            datasets::Memory values;
            datasets::Names names;
            const bool known =
                source.survey(0) && source.decode(file_.number(), fake_libdeflate, zfp::portable_kernel, values);
            require(known || !honest_, "an ordinary dataset is known");
            if (known) {
                require(!honest_ || values == values_, "its values are read");
                rewrite(source, values);
                rewrite_with_loss(source, values);
                if (attribute_names(hdf5_, source.id(), names)) read(source.id(), names);
            }
        }
        std::vector<datasets::Link> links;
        const auto copied = datasets::copy_empty_group(hdf5_, file_id, copy_id, "group", 0, list_id);
        require(!honest_ || copied == datasets::GroupCopied::yes, "an empty group is copied");
        const bool listed = datasets::read_links(hdf5_, file_id, links),
                   bare = datasets::bare_address(hdf5_, file_id) == 5;
        require(!honest_ || (listed && bare && links.size() == 2 && links[1].info.address == 2), "a group is known");
        carry();
        require(open_ == 0, "what was opened is closed");
    }

private:
    static constexpr std::size_t rows = 6, columns = 5, itemsize = 4, chunk_nbytes = 2 * columns * itemsize;
    static constexpr datasets::hid_t file_id = 1, source_id = 2, copy_id = 3, type_id = 4, space_id = 5, list_id = 6,
                                     attribute_id = 7;

    static inline thread_local FakeDataset* now = nullptr;

    void rewrite(const datasets::SmallDataset& source, const datasets::Memory& values) {
        chunks::Shape shape{2, {}};
        shape.extent[0] = random_.one_in(4) ? random_.below(9) + 1 : 3, shape.extent[1] = columns;
        chunks::Pipeline pipeline(shape, itemsize, fake_libdeflate);
        const unsigned size = itemsize, level = 4;
        pipeline.add(chunks::shuffle_id, {&size, 1});
        pipeline.add(chunks::deflate_id, {&level, 1});
        datasets::Rewriter rewriter(hdf5_, source, pipeline);
        const bool whole = rows % shape.extent[0] == 0;
        if (!rewriter.encode(values, zfp::portable_kernel, 1 << 20))
            return require(!honest_ || !whole, "whole chunks are encoded");
        const auto rewritten = rewriter.write({file_id, "w", 0, type_id, list_id}, 0);
        require(!honest_ || rewritten == datasets::Rewritten::done, "it is written");
        if (!honest_) return;
        require(rewriter.has_attributes() && rewriter.chunks().size() == written_.size(), "all of it is");
        for (const auto& chunk : rewriter.chunks())
            require(chunk.offset > 0 && chunk.checksum != 0, "its place is told");
    }

    // Through zfp, which keeps the bound of its tolerance, but not one that is far smaller, nor limits within the
    // values.
    void rewrite_with_loss(const datasets::SmallDataset& source, const datasets::Memory& values) {
        constexpr double tolerance = 1;
        const chunks::Shape shape{2, {rows / 2, columns}};
        chunks::Pipeline pipeline(shape, itemsize, fake_libdeflate);
        zfp::Params params;
        params.minexp = 0;
        unsigned words[hdf5::max_stored];
        std::size_t count = 0;
        const zfp::Layout layout = zfp::Layout::contiguous(2, {columns, rows / 2, 1, 1});
        require(static_cast<bool>(hdf5::stored_of_params(params, zfp::Type::float32, layout, words, count)), "is zfp");
        pipeline.add(chunks::zfp_id, {words, count});
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const chunks::Loss within{0, {}, -infinity, infinity, tolerance, false};
        const chunks::Loss nearer{0, {}, -infinity, infinity, 1e-30, false};
        const chunks::Loss limited{0, {}, 2000, infinity, tolerance, false};
        for (const chunks::Loss* loss : {&nearer, &limited}) {
            datasets::Rewriter refused(hdf5_, source, pipeline);
            require(!refused.encode(values, zfp::portable_kernel, 1 << 20, loss) || (!honest_ && loss == &nearer),
                    "what breaks the terms is refused");
        }
        datasets::Rewriter rewriter(hdf5_, source, pipeline);
        if (!rewriter.encode(values, zfp::portable_kernel, 1 << 20, &within))
            return require(!honest_, "values are within the tolerance");
        for (const datasets::NewChunk& chunk : rewriter.chunks())
            require(chunk.encoded.kept && chunk.encoded.error <= tolerance, "the largest error is told");
        written_.clear();
        const auto rewritten = rewriter.write({file_id, "w", 0, type_id, list_id}, 0);
        require(!honest_ || rewritten == datasets::Rewritten::done, "it is written");
        require(!honest_ || written_.size() == rewriter.chunks().size(), "all of it is");
    }

    // Write a chunk for each record, in the grid of the records.
    void carry() {
        datasets::ChunkGrid grid{{2, {}}, {2, {}}};
        grid.shape.extent[0] = rows, grid.shape.extent[1] = columns;
        grid.chunk.extent[0] = 2, grid.chunk.extent[1] = honest_ ? columns : random_.below(columns + 1);
        datasets::ChunkRecords records(grid);
        const bool known = records.read(hdf5_, source_id);
        require(known ? grid.valid() : !honest_, "ordinary records are known");
        std::vector<datasets::ChunkToWrite> chunks;
        if (known)
            for (const auto& record : records.rows())
                chunks.push_back({static_cast<std::uint64_t>(record.number), values_, 0});
        if (!honest_) chunks.push_back({random_.bits(), values_, 0});
        written_.clear();
        const bool written = grid.valid() && datasets::write_chunks(hdf5_, copy_id, grid, nullptr, chunks);
        require(written || !honest_, "chunks are written");
        if (honest_) require(written_.size() == rows / 2 && written_[2].first == 4, "each to its origin");
    }

    void read(datasets::hid_t owner, const datasets::Names& names) {
        for (const datasets::AttributeName& name : names) {
            datasets::Attribute attribute(hdf5_, owner, name);
            const bool known = attribute.read();
            require(known == attribute.is_read() && (known || !honest_), "a plain attribute is known");
            if (!known) continue;
            const bool coded = !attribute.type_code().empty() && !attribute.space_code().empty();
            require(coded || !honest_, "and what it is");
            require(attribute.value_code() == datasets::Memory(3 * itemsize, 3), "and its values");
        }
    }

    // Sometimes something else than the truth.
    template <class Number>
    static Number told(Number truth) {
        if (now->honest_ || !now->random_.one_in(60)) return truth;
        switch (now->random_.below(4)) {
            case 0:
                return static_cast<Number>(-1);
            case 1:
                return 0;
            case 2:
                return static_cast<Number>(now->random_.below(100));
            default:
                return static_cast<Number>(now->random_.bits());
        }
    }
    static datasets::Status done() { return told(0) < 0 ? -1 : 0; }
    static datasets::hid_t opened(datasets::hid_t id) {
        if (done() < 0) return -1;
        ++now->open_;
        return id;
    }
    static datasets::Status closed(datasets::hid_t) { return --now->open_, 0; }
    static int fails() { return done() < 0 ? -1 : 1; }

    void bind_datasets() {
        hdf5_.open = [](auto, auto, auto) { return opened(source_id); };
        hdf5_.close = closed;
        hdf5_.type_of = [](auto) { return opened(type_id); };
        hdf5_.space_of = [](auto) { return opened(space_id); };
        hdf5_.properties_of = [](auto) { return opened(list_id); };
        hdf5_.stored_nbytes = [](auto) { return told(datasets::hsize_t{120}); };
        hdf5_.read = [](auto, auto, auto, auto, auto, void* out) {
            std::copy(now->values_.begin(), now->values_.end(), static_cast<std::uint8_t*>(out));
            return done();
        };
        hdf5_.chunk_count = [](datasets::hid_t id, auto, datasets::hsize_t* count) {
            *count = told<datasets::hsize_t>(id == copy_id ? now->written_.size() : rows / 2);
            return done();
        };
        hdf5_.chunk_at = [](datasets::hid_t id, auto, datasets::hsize_t at, datasets::hsize_t* origin, unsigned* mask,
                            std::uint64_t* address, datasets::hsize_t* nbytes) {
            const bool copied = id == copy_id && at < now->written_.size();
            origin[0] = told<datasets::hsize_t>(copied ? now->written_[at].first : 2 * at);
            origin[1] = told<datasets::hsize_t>(0);
            *mask = told(0u);
            *address = told<std::uint64_t>(copied ? 100 + at : at * chunk_nbytes);
            *nbytes = told<datasets::hsize_t>(copied ? now->written_[at].second : chunk_nbytes);
            return done();
        };
        hdf5_.visit_chunks = [](auto dataset, auto, auto visit, void* data) {
            for (datasets::hsize_t at = 0; at < rows / 2; ++at) {
                datasets::hsize_t origin[2], nbytes = 0;
                std::uint64_t address = 0;
                unsigned mask = 0;
                now->hdf5_.chunk_at(dataset, 0, at, origin, &mask, &address, &nbytes);
                if (visit(origin, mask, address, nbytes, data) < 0) return -1;
            }
            return done();
        };
        hdf5_.create = [](auto, auto, auto, auto, auto, auto, auto) { return opened(copy_id); };
        hdf5_.write_chunk = [](auto, auto, auto, const datasets::hsize_t* origin, std::size_t nbytes, const void*) {
            now->written_.push_back({origin[0], nbytes});
            return done();
        };
    }

    void bind_types_and_spaces() {
        hdf5_.close_type = hdf5_.close_space = closed;
        hdf5_.type_class = [](datasets::hid_t) { return told(datasets::class_float); };
        // What HDF5 says of a size is what it writes.
        hdf5_.type_nbytes = [](auto) { return itemsize; };
        hdf5_.types_equal = [](auto, auto) { return fails(); };
        hdf5_.is_named = [](auto) { return done(); };
        hdf5_.encode_type = [](auto, void* code, std::size_t* nbytes) {
            if (code != nullptr) std::memset(code, 7, *nbytes);
            *nbytes = 20;
            return done();
        };
        hdf5_.is_variable_text = [](auto) { return 0; };
        hdf5_.create_space = [](auto, auto, auto) { return opened(space_id); };
        hdf5_.space_class = [](auto) { return told(datasets::space_simple); };
        hdf5_.space_rank = [](auto) { return told(2) == 2 ? 2 : -1; };
        hdf5_.space_extents = [](auto, datasets::hsize_t* extents, datasets::hsize_t* maxima) {
            extents[0] = maxima[0] = rows, extents[1] = maxima[1] = columns;
            return told(2);
        };
        hdf5_.space_count = [](auto) { return std::int64_t{3}; };
    }

    void bind_properties() {
        hdf5_.close_properties = closed;
        hdf5_.layout = [](auto) { return told(datasets::layout_chunked); };
        hdf5_.chunk_shape = [](auto, int, datasets::hsize_t* extents) {
            extents[0] = told<datasets::hsize_t>(2), extents[1] = told<datasets::hsize_t>(columns);
            return told(2);
        };
        hdf5_.chunk_options = [](auto, unsigned* options) { return *options = told(0u), done(); };
        hdf5_.external_count = [](auto) { return told(0); };
        hdf5_.filter_count = [](auto) { return told(0); };
        hdf5_.filter_at = [](auto, auto, unsigned* flags, std::size_t* count, unsigned* values,
                             std::size_t label_nbytes, char* label, unsigned*) {
            for (std::size_t i = 0; i < *count; ++i) values[i] = now->random_.word();
            *flags = 0, *count = told<std::size_t>(1);
            std::memset(label, 'x', label_nbytes);
            return told(static_cast<int>(now->random_.below(5)));
        };
        hdf5_.fill_state = [](auto, int* state) { return *state = told(1), done(); };
        hdf5_.fill_value = [](auto, auto, void* value) { return std::memset(value, 0, itemsize), done(); };
        hdf5_.fill_time = [](auto, int* when) { return *when = told(0), done(); };
        hdf5_.attribute_order = [](auto, unsigned* flags) { return *flags = told(0u), done(); };
        hdf5_.attribute_phases = [](auto, unsigned* most, unsigned* least) {
            return *most = *least = told(8u), done();
        };
    }

    void bind_attributes() {
        hdf5_.visit_attributes = [](auto owner, auto, auto, auto, auto visit, void* data) {
            const datasets::AttributeInfo info{false, 0, datasets::charset_utf8, 12};
            for (const char* name : {"units", "n"}) visit(owner, name, &info, data);
            return done();
        };
        hdf5_.open_attribute = [](auto, auto, auto) { return opened(attribute_id); };
        hdf5_.create_attribute = [](auto, auto, auto, auto, auto, auto) { return opened(attribute_id); };
        hdf5_.close_attribute = closed;
        hdf5_.attribute_type = [](auto) { return opened(type_id); };
        hdf5_.attribute_space = [](auto) { return opened(space_id); };
        hdf5_.read_attribute = [](auto, auto, void* out) { return std::memset(out, 3, 3 * itemsize), done(); };
        hdf5_.write_attribute = [](auto, auto, const void*) { return done(); };
        hdf5_.create_properties = [](auto) { return opened(list_id); };
        hdf5_.set_charset = [](auto, auto) { return done(); };
        static const datasets::hid_t attributes = 8;
        hdf5_.attribute_properties = &attributes;
        hdf5_.comment = [](auto, auto, auto) { return told(std::ptrdiff_t{0}); };
        hdf5_.reclaim = [](auto, auto, auto, auto) { return 0; };
    }

    void bind_groups() {
        hdf5_.visit_links = [](auto group, auto, auto, auto, auto visit, void* data) {
            for (std::uint64_t at : {1, 2}) {
                const datasets::LinkInfo info{told(0), told(0) != 0, 0, 0, told(at)};
                visit(group, at == 1 ? "" : "name", &info, data);
            }
            return done();
        };
        hdf5_.group_info = [](auto, datasets::GroupInfo* info) {
            return info->storage = told(0), info->count = told<datasets::hsize_t>(0), done();
        };
        hdf5_.open_object = [](auto, auto, auto) { return opened(file_id); };
        hdf5_.close_object = closed;
        hdf5_.kind = [](auto) { return told(datasets::kind_group); };
        hdf5_.create_group = [](auto, auto, auto, auto, auto) { return opened(copy_id); };
        hdf5_.object_info = [](auto, datasets::ObjectInfo* info, auto) {
            return info->address = 5, info->header_version = told(1u), done();
        };
    }

    Random& random_;
    datasets::Libhdf5 hdf5_;
    bool honest_;
    system::ScratchFile file_;
    int open_ = 0;
    datasets::Memory values_;
    std::vector<std::pair<datasets::hsize_t, std::size_t>> written_;
};

}  // namespace tamis::tests
