// Attributes of objects, read bit by bit, and copied.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/datasets/small_dataset.hpp"

namespace tamis::datasets {

struct AttributeName {
    std::string name;
    unsigned order = 0;  // of creation, 0 if it is not tracked
    int charset = 0;     // of the name
};
using Names = std::vector<AttributeName>;

// Names of all attributes in the order in which they are stored; false if HDF5 cannot list them.
inline bool attribute_names(const Libhdf5& hdf5, hid_t owner, Names& names) {
    const auto add = [](hid_t, const char* name, const AttributeInfo* info, void* data) -> Status {
        static_cast<Names*>(data)->push_back({name, info->order_valid ? info->order : 0, info->charset});
        return 0;
    };
    hsize_t position = 0;
    return hdf5.visit_attributes(owner, by_name, native_order, &position, add, &names) >= 0;
}

// An attribute in memory: plain bytes, or texts of any length.
class Attribute {
public:
    Attribute(const Libhdf5& hdf5, hid_t owner, const AttributeName& name)
        : hdf5_(hdf5),
          id_(hdf5.open_attribute(owner, name.name.c_str(), none), hdf5.close_attribute),
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
        if (hdf5_.read_attribute(id_, type_, values_.data()) < 0) values_.clear();
        has_texts_ = is_text && is_read();
        return is_read();
    }

    // Addresses of objects, a list for each element; false if the values are others. The attribute then stays unread.
    bool read_references(std::vector<std::vector<std::uint64_t>>& lists) const {
        if (!type_.valid() || hdf5_.type_class(type_) != class_sequence || hdf5_.space_class(space_) != space_simple)
            return false;
        const Id base(hdf5_.base_of(type_), hdf5_.close_type);
        const std::int64_t count = hdf5_.space_count(space_);
        if (!base.valid() || hdf5_.type_class(base) != class_reference ||
            hdf5_.type_nbytes(base) != sizeof(std::uint64_t) || count < 1 || count > max_rank)
            return false;
        std::vector<Sequence> sequences(static_cast<std::size_t>(count));
        if (hdf5_.read_attribute(id_, type_, sequences.data()) < 0) return false;
        for (const auto& [length, items] : sequences) {
            const auto* const first = static_cast<const std::uint64_t*>(items);
            lists.emplace_back(first, first + length);
        }
        return hdf5_.reclaim(type_, space_, none, sequences.data()) >= 0;
    }

    // Elements along the first axis; 0 if there is none.
    hsize_t length() const {
        hsize_t extents[max_rank] = {};
        const int rank = space_.valid() ? hdf5_.space_rank(space_) : 0;
        return rank > 0 && rank <= max_rank && hdf5_.space_extents(space_, extents, nullptr) == rank ? extents[0] : 0;
    }

    // The text of an attribute that was read, if it is a single one; its end is marked by 0 or its size.
    std::optional<std::string_view> text() const {
        if (hdf5_.type_class(type_) != class_string || hdf5_.space_class(space_) != space_scalar) return std::nullopt;
        if (has_texts_) return texts()[0] ? std::optional<std::string_view>(texts()[0]) : std::nullopt;
        std::string_view text(reinterpret_cast<const char*>(values_.data()), values_.size());
        while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
        return text;
    }

    // Create the attribute, which was read, at another object.
    bool copy_to(hid_t target, const AttributeName& name) const {
        const bool utf8 = name.charset == charset_utf8;
        const Id properties(
            utf8 ? hdf5_.create_properties(*hdf5_.attribute_properties) : none,
            utf8 ? hdf5_.close_properties : [](hid_t) -> Status { return 0; });
        if (!properties.valid() || (utf8 && hdf5_.set_charset(properties, charset_utf8) < 0)) return false;
        const Id copy(hdf5_.create_attribute(target, name.name.c_str(), type_, space_, properties, none),
                      hdf5_.close_attribute);
        return copy.valid() && hdf5_.write_attribute(copy, type_, values_.data()) >= 0;
    }

    bool is_read() const { return !values_.empty(); }

    // What tells attributes that were read from others: the type as HDF5 encodes it, the dataspace, and the values.
    // Empty if HDF5 cannot say.
    Memory type_code() const { return encoded(hdf5_, type_); }

    Memory space_code() const {
        hsize_t extents[2 * max_rank] = {};
        const int rank = hdf5_.space_rank(space_);
        if (rank < 0 || rank > max_rank || hdf5_.space_extents(space_, extents, extents + rank) != rank) return {};
        Memory code(1 + 2 * static_cast<std::size_t>(rank) * sizeof(hsize_t));
        code[0] = static_cast<std::uint8_t>(hdf5_.space_class(space_));
        std::memcpy(code.data() + 1, extents, code.size() - 1);
        return code;
    }

    Memory value_code() const {
        if (!has_texts_) return values_;
        Memory code;
        for (const char* text : texts()) {
            code.push_back(text != nullptr);
            if (text) code.insert(code.end(), text, text + std::strlen(text) + 1);
        }
        return code;
    }

private:
    std::span<const char* const> texts() const {
        return {reinterpret_cast<const char* const*>(values_.data()), values_.size() / sizeof(char*)};
    }

    static constexpr int max_rank = 32;  // of HDF5

    const Libhdf5& hdf5_;
    Id id_, type_, space_;
    Memory values_;
    bool has_texts_ = false;
};

enum class Copied { all, nothing, some };

// Copy all attributes of an object to another one, which has none, in the order of their creation if it is tracked.
// None are copied if one is not plain bytes or texts, or the object has a comment; some, if HDF5 then fails.
inline Copied copy_attributes(const Libhdf5& hdf5, hid_t source, hid_t target) {
    Names names;
    if (hdf5.comment(source, nullptr, 0) != 0 || !attribute_names(hdf5, source, names)) return Copied::nothing;
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& one, const auto& other) { return one.order < other.order; });
    std::deque<Attribute> attributes;  // read before the first is written
    for (const AttributeName& name : names)
        if (!attributes.emplace_back(hdf5, source, name).read()) return Copied::nothing;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (!attributes[i].copy_to(target, names[i])) return Copied::some;
    return Copied::all;
}

}  // namespace tamis::datasets
