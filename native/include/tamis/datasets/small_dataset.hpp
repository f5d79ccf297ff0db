// A small dataset of numbers: its facts, and its values as the file has them.
//
// Unusual, damaged and large datasets are left to the general code, which reads them, or says what is wrong.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tamis/chunks/read.hpp"
#include "tamis/datasets/chunk_records.hpp"
#include "tamis/datasets/libhdf5.hpp"

namespace tamis::datasets {

inline constexpr std::size_t max_nbytes = std::size_t{64} << 10;  // of values
inline constexpr hsize_t max_chunks = 16;                         // HDF5 walks over the index for each
inline constexpr std::size_t max_parameters = 256;                // HDF5 takes a larger count for a mistake
inline constexpr std::size_t max_label = 512;

using Memory = std::vector<std::uint8_t>;

// A type as HDF5 encodes it; empty if it cannot.
inline Memory encoded(const Libhdf5& hdf5, hid_t type) {
    std::size_t nbytes = 0;
    if (hdf5.encode_type(type, nullptr, &nbytes) < 0) return {};
    Memory code(nbytes);
    return hdf5.encode_type(type, code.data(), &nbytes) < 0 ? Memory{} : code;
}

struct Filter {
    int id = 0;
    unsigned flags = 0;
    std::vector<unsigned> values;
    std::string label;
};

// Facts that many datasets of a file share.
struct Form {
    Memory type;  // as HDF5 encodes it
    int layout = 0;
    chunks::Shape chunk;
    unsigned chunk_options = 0;
    std::vector<Filter> filters;
    int fill_state = 0;
    Memory fill;  // in the type of the dataset, if it is defined
    int fill_time = 0;
    unsigned attribute_order = 0, most_compact = 0, least_dense = 0;  // of attributes
};

// The chunk index: numbers in the grid of chunks, in order.
struct Index {
    std::vector<std::int64_t> numbers, origins, offsets, nbytes;
    std::vector<std::uint32_t> masks;
};

class SmallDataset {
public:
    SmallDataset(const Libhdf5& hdf5, hid_t place, const char* path)
        : SmallDataset(hdf5, hdf5.open(place, path, none)) {}

    // Of an open dataset, which it closes.
    SmallDataset(const Libhdf5& hdf5, hid_t id)
        : hdf5_(hdf5),
          id_(id, hdf5.close),
          type_(id_.valid() ? hdf5.type_of(id_) : -1, hdf5.close_type),
          space_(id_.valid() ? hdf5.space_of(id_) : -1, hdf5.close_space),
          properties_(id_.valid() ? hdf5.properties_of(id_) : -1, hdf5.close_properties) {}

    // Read the facts; `base` is what to add to HDF5's offsets. False if the dataset is not known for sure.
    bool survey(std::int64_t base) { return read_header() && read_index(base); }

    // Read the facts without the index, of a dataset of any size, of numbers or texts of a fixed size.
    bool survey_header() {
        any_size_ = true;
        return read_header();
    }

    hid_t id() const { return id_; }
    hid_t type() const { return type_; }
    const Form& form() const { return form_; }
    const chunks::Shape& shape() const { return shape_; }
    const std::vector<hsize_t>& maxima() const { return maxima_; }
    const Index& index() const { return index_; }
    std::size_t itemsize() const { return itemsize_; }
    std::size_t nbytes() const { return itemsize_ * shape_.count(); }
    hsize_t stored_nbytes() const { return hdf5_.stored_nbytes(id_); }

    // Whether the file has all values; HDF5 reads others as fill values.
    bool is_complete() const {
        return form_.layout == layout_chunked ? index_.numbers.size() == chunk_count() : stored_nbytes() > 0;
    }

    // Decode the values from the open `file`, without HDF5's filters. False if a chunk is damaged or of other filters.
    bool decode(int file, const chunks::Libdeflate& libdeflate, const zfp::Kernel& kernel, Memory& values) const {
        values.resize(nbytes());
        if (form_.layout != layout_chunked) return read(values);
        if (index_.numbers.size() < chunk_count()) {
            if (form_.fill_state == fill_undefined || form_.fill_time == fill_never) return false;
            for (std::size_t at = 0; at < values.size(); at += itemsize_)
                std::copy(form_.fill.begin(), form_.fill.end(), values.begin() + static_cast<std::ptrdiff_t>(at));
        }
        chunks::Pipeline pipeline(form_.chunk, itemsize_, libdeflate);
        for (const Filter& filter : form_.filters) pipeline.add(filter.id, filter.values);
        if (form_.filters.empty() && !chunks_are_whole(pipeline)) return false;
        const chunks::Table table{index_.origins, index_.offsets, index_.nbytes, index_.masks};
        chunks::Place<std::uint8_t> place{values.data(), shape_, shape_.contiguous(itemsize_), {}};
        chunks::Reader reader(pipeline, kernel, file);
        for (std::size_t i = 0; i < index_.numbers.size(); ++i)
            if (!reader.read(table, i, place)) return false;
        return true;
    }

    // Read the values by HDF5. Their chunks must be known to be sound: HDF5 trusts sizes.
    bool read(Memory& values) const {
        values.resize(nbytes());
        return hdf5_.read(id_, type_, none, none, none, values.data()) >= 0;
    }

private:
    bool read_header() {
        return type_.valid() && space_.valid() && properties_.valid() && read_type() && read_shape() &&
               read_properties();
    }

    bool read_type() {
        const int type_class = hdf5_.type_class(type_);
        const bool is_text = any_size_ && type_class == class_string && hdf5_.is_variable_text(type_) == 0;
        itemsize_ = hdf5_.type_nbytes(type_);
        if ((type_class != class_integer && type_class != class_float && !is_text) || itemsize_ == 0 ||
            itemsize_ > max_nbytes || hdf5_.is_named(type_) != 0)
            return false;
        form_.type = encoded(hdf5_, type_);
        return !form_.type.empty();
    }

    bool read_shape() {
        const int space_class = hdf5_.space_class(space_);
        if (any_size_ && space_class == space_scalar) return true;
        const int rank = space_class == space_simple ? hdf5_.space_rank(space_) : 0;
        if (rank < 1 || rank > static_cast<int>(chunks::max_axes)) return false;
        hsize_t extents[chunks::max_axes], maxima[chunks::max_axes];
        if (hdf5_.space_extents(space_, extents, maxima) != rank) return false;
        maxima_.assign(maxima, maxima + rank);
        return fits(extents, rank, shape_);
    }

    // Copy extents to a shape. False if their product, in bytes, is 0 or large, unless any size is allowed.
    bool fits(const hsize_t* extents, int rank, chunks::Shape& shape) const {
        hsize_t room = max_nbytes / itemsize_;
        shape.rank = static_cast<unsigned>(rank);
        for (unsigned axis = 0; axis < shape.rank; ++axis) {
            if (!any_size_ && (extents[axis] == 0 || extents[axis] > room)) return false;
            if (!any_size_) room /= extents[axis];
            shape.extent[axis] = static_cast<std::size_t>(extents[axis]);
        }
        return true;
    }

    bool read_properties() {
        form_.layout = hdf5_.layout(properties_);
        if (form_.layout == layout_chunked) {
            hsize_t extents[chunks::max_axes];
            const int rank = static_cast<int>(shape_.rank);
            if (hdf5_.chunk_shape(properties_, rank, extents) != rank || !fits(extents, rank, form_.chunk) ||
                hdf5_.chunk_options(properties_, &form_.chunk_options) < 0 || form_.chunk_options != 0)
                return false;
        } else if ((form_.layout != layout_contiguous && form_.layout != layout_compact) ||
                   hdf5_.external_count(properties_) != 0) {
            return false;
        }
        return read_filters() && read_fill() && hdf5_.attribute_order(properties_, &form_.attribute_order) >= 0 &&
               hdf5_.attribute_phases(properties_, &form_.most_compact, &form_.least_dense) >= 0;
    }

    bool read_filters() {
        const int count = hdf5_.filter_count(properties_);
        if (count < 0 || count > static_cast<int>(chunks::max_stages)) return false;
        for (int i = 0; i < count; ++i) {
            Filter filter;
            unsigned values[max_parameters], config = 0;
            char label[max_label] = {};
            std::size_t number = max_parameters;
            filter.id = hdf5_.filter_at(properties_, static_cast<unsigned>(i), &filter.flags, &number, values,
                                        max_label - 1, label, &config);
            if (filter.id < 0 || number > max_parameters) return false;
            filter.values.assign(values, values + number);
            filter.label = label;
            form_.filters.push_back(std::move(filter));
        }
        return true;
    }

    bool read_fill() {
        if (hdf5_.fill_state(properties_, &form_.fill_state) < 0 || hdf5_.fill_time(properties_, &form_.fill_time) < 0)
            return false;
        if (form_.fill_state == fill_undefined) return true;
        form_.fill.resize(itemsize_);
        return hdf5_.fill_value(properties_, type_, form_.fill.data()) >= 0;
    }

    std::size_t chunk_count() const {
        std::size_t count = 1;
        for (unsigned axis = 0; axis < shape_.rank; ++axis)
            count *= (shape_.extent[axis] + form_.chunk.extent[axis] - 1) / form_.chunk.extent[axis];
        return count;
    }

    bool read_index(std::int64_t base) {
        hsize_t count = 0;
        if (form_.layout != layout_chunked) return true;
        if (has_moved_axis() || chunk_count() > max_chunks || hdf5_.chunk_count(id_, none, &count) < 0 ||
            count > chunk_count())
            return false;
        for (hsize_t i = 0; i < count; ++i)
            if (!read_record(i, base)) return false;
        return true;
    }

    // HDF5 2.0 reports origins of other chunks where one axis has no limit, and is not the first.
    bool has_moved_axis() const {
        const auto axis = std::find(maxima_.begin(), maxima_.end(), unlimited);
        return axis != maxima_.end() && axis != maxima_.begin() &&
               std::find(axis + 1, maxima_.end(), unlimited) == maxima_.end();
    }

    bool read_record(hsize_t at, std::int64_t base) {
        hsize_t origin[chunks::max_axes], nbytes = 0;
        std::uint64_t address = 0;
        unsigned mask = 0;
        if (hdf5_.chunk_at(id_, none, at, origin, &mask, &address, &nbytes) < 0) return false;
        if (address > std::uint64_t{1} << 62 || nbytes > std::uint64_t{1} << 32) return false;
        const std::int64_t number = ChunkGrid{shape_, form_.chunk}.number_of(origin);
        if (number < 0) return false;
        index_.origins.insert(index_.origins.end(), origin, origin + shape_.rank);
        // Other orders, and chunks that are there twice, are for others.
        if (!index_.numbers.empty() && index_.numbers.back() >= number) return false;
        index_.numbers.push_back(number);
        index_.offsets.push_back(static_cast<std::int64_t>(address) + base);
        index_.nbytes.push_back(static_cast<std::int64_t>(nbytes));
        index_.masks.push_back(mask);
        return true;
    }

    bool chunks_are_whole(const chunks::Pipeline& pipeline) const {
        const auto whole = static_cast<std::int64_t>(pipeline.nbytes());
        return std::all_of(index_.nbytes.begin(), index_.nbytes.end(), [&](auto nbytes) { return nbytes == whole; });
    }

    const Libhdf5& hdf5_;
    Id id_, type_, space_, properties_;
    bool any_size_ = false;
    std::size_t itemsize_ = 0;
    Form form_;
    chunks::Shape shape_;
    std::vector<hsize_t> maxima_;
    Index index_;
};

}  // namespace tamis::datasets
