// The links of a group, and what else it has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/datasets/libhdf5.hpp"

namespace tamis::datasets {

struct Link {
    std::string name;
    LinkInfo info;
};

// All links in the order in which they are stored; false if HDF5 cannot list them. Other orders are not safe: see
// src/tamis/formats/hdf5/tree/walk.py.
inline bool read_links(const Libhdf5& hdf5, hid_t group, std::vector<Link>& links) {
    const auto add = [](hid_t, const char* name, const LinkInfo* info, void* data) -> Status {
        static_cast<std::vector<Link>*>(data)->push_back({name, *info});
        return 0;
    };
    hsize_t position = 0;
    return hdf5.visit_links(group, by_name, native_order, &position, add, &links) >= 0;
}

// The address of a group that certainly has no attributes, no comment, and no settings: link and header are in formats
// before HDF5 1.8. None for others.
inline std::optional<std::uint64_t> bare_address(const Libhdf5& hdf5, hid_t group, hsize_t* link_count = nullptr) {
    GroupInfo links{};
    ObjectInfo object{};
    const bool bare = hdf5.group_info(group, &links) >= 0 && links.storage == storage_symbol_table &&
                      hdf5.object_info(group, &object, tell_address | count_attributes | tell_header) >= 0 &&
                      object.attribute_count == 0 && object.header_version == 1 && hdf5.comment(group, nullptr, 0) == 0;
    if (bare && link_count != nullptr) *link_count = links.count;
    return bare ? std::optional(object.address) : std::nullopt;
}

enum class GroupCopied { no, yes, failed };

// Create a group like one of another group, by its name, if it is bare and has no links. `properties` are those of a
// bare group.
inline GroupCopied copy_empty_group(const Libhdf5& hdf5, hid_t source, hid_t target, const char* name, hid_t link,
                                    hid_t properties) {
    const Id group(hdf5.open_object(source, name, none), hdf5.close_object);
    hsize_t count = 1;
    if (!group.valid() || hdf5.kind(group) != kind_group || !bare_address(hdf5, group, &count) || count != 0)
        return GroupCopied::no;
    const Id copy(hdf5.create_group(target, name, link, properties, none), hdf5.close_object);
    return copy.valid() ? GroupCopied::yes : GroupCopied::failed;
}

}  // namespace tamis::datasets
