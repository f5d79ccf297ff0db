// Attributes of two objects, compared bit by bit.
#pragma once

#include <algorithm>
#include <string>

#include "tamis/datasets/small_dataset.hpp"

namespace tamis::datasets {

using Names = std::vector<std::string>;

// Names of all attributes, sorted; false if HDF5 cannot list them.
inline bool attribute_names(const Libhdf5& hdf5, hid_t owner, Names& names) {
    const auto add = [](hid_t, const char* name, const void*, void* data) -> Status {
        static_cast<Names*>(data)->emplace_back(name);
        return 0;
    };
    hsize_t position = 0;
    if (hdf5.visit_attributes(owner, by_name, native_order, &position, add, &names) < 0) return false;
    std::sort(names.begin(), names.end());
    return true;
}

// An attribute in memory: plain bytes, or texts of any length.
class Attribute {
public:
    Attribute(const Libhdf5& hdf5, hid_t owner, const std::string& name)
        : hdf5_(hdf5),
          id_(hdf5.open_attribute(owner, name.c_str(), none), hdf5.close_attribute),
          type_(id_.valid() ? hdf5.attribute_type(id_) : -1, hdf5.close_type),
          space_(id_.valid() ? hdf5.attribute_space(id_) : -1, hdf5.close_space) {}

    ~Attribute() {
        if (has_texts_) hdf5_.reclaim(type_, space_, none, values_.data());
    }
    Attribute(const Attribute&) = delete;
    Attribute& operator=(const Attribute&) = delete;

    // Read the values. False if they are not plain bytes or texts, or many.
    bool read() {
        if (!type_.valid() || !space_.valid() || hdf5_.is_named(type_) != 0) return false;
        const int type_class = hdf5_.type_class(type_);
        const bool is_text = type_class == class_string && hdf5_.is_variable_text(type_) > 0;
        const bool is_plain = type_class == class_integer || type_class == class_float || type_class == class_string ||
                              type_class == class_enum || type_class == class_opaque;
        const int space_class = hdf5_.space_class(space_);
        const std::int64_t count = hdf5_.space_count(space_);
        const std::size_t size = hdf5_.type_nbytes(type_);
        if (!is_plain || (space_class != space_scalar && space_class != space_simple) || count < 1 || size == 0 ||
            static_cast<std::uint64_t>(count) > max_nbytes / size)
            return false;
        values_.assign(static_cast<std::size_t>(count) * size, 0);
        if (hdf5_.read_attribute(id_, type_, values_.data()) < 0) return false;
        has_texts_ = is_text;
        return true;
    }

    // Of attributes that were read.
    bool operator==(const Attribute& other) const {
        if (hdf5_.types_equal(type_, other.type_) <= 0 || hdf5_.spaces_equal(space_, other.space_) <= 0) return false;
        if (!has_texts_) return values_ == other.values_;
        return std::equal(texts().begin(), texts().end(), other.texts().begin(), other.texts().end(),
                          [](const char* first, const char* second) {
                              return first == second || (first && second && std::strcmp(first, second) == 0);
                          });
    }

private:
    std::span<const char* const> texts() const {
        return {reinterpret_cast<const char* const*>(values_.data()), values_.size() / sizeof(char*)};
    }

    const Libhdf5& hdf5_;
    Id id_, type_, space_;
    Memory values_;
    bool has_texts_ = false;
};

// Whether the attributes of two objects, with these names, are certainly the same.
inline bool same_attributes(const Libhdf5& hdf5, hid_t first, hid_t second, const Names& names, const Names& others) {
    return names == others && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
               Attribute before(hdf5, first, name), after(hdf5, second, name);
               return before.read() && after.read() && before == after;
           });
}

}  // namespace tamis::datasets
