// Calls of the libhdf5 that a loaded library, such as a module of h5py, brings along. They are bound by name, because
// there is none to link. Identifiers are shared with that library. Numbers and types are those of HDF5 1.10.5 to 2.x.
//
// HDF5 is not safe in threads: whoever calls holds the lock of that library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tamis/system/shared_library.hpp"

namespace tamis::datasets {

using hid_t = std::int64_t;
using hsize_t = unsigned long long;
using Status = int;  // herr_t and htri_t: negative is a failure

inline constexpr int class_integer = 0, class_float = 1, class_string = 3, class_opaque = 5, class_reference = 7,
                     class_enum = 8, class_sequence = 9;                             // H5T_class_t
inline constexpr int layout_compact = 0, layout_contiguous = 1, layout_chunked = 2;  // H5D_layout_t
inline constexpr int fill_undefined = 0, fill_user_defined = 2;                      // H5D_fill_value_t
inline constexpr int fill_never = 1;                                                 // H5D_fill_time_t
inline constexpr int space_scalar = 0, space_simple = 1;                             // H5S_class_t
inline constexpr int kind_group = 2, kind_dataset = 5;                               // H5I_type_t
inline constexpr int link_hard = 0, storage_symbol_table = 0;                        // H5L_type_t, H5G_storage_type_t
inline constexpr unsigned tell_address = 1, count_attributes = 4, tell_header = 8;   // H5O_INFO_BASIC, _NUM_ATTRS, _HDR
inline constexpr int by_name = 0, native_order = 2;                                  // H5_index_t, H5_iter_order_t
inline constexpr int charset_utf8 = 1;                                               // H5T_cset_t
inline constexpr hsize_t unlimited = ~hsize_t{0};
inline constexpr hid_t none = 0;  // H5P_DEFAULT and H5S_ALL

// H5A_info_t
struct AttributeInfo {
    bool order_valid;
    unsigned order;
    int charset;
    hsize_t nbytes;
};

// H5L_info1_t
struct LinkInfo {
    int kind;
    bool order_valid;
    std::int64_t order;
    int charset;
    std::uint64_t address;  // of a hard link
};

// H5G_info_t
struct GroupInfo {
    int storage;
    hsize_t count;
    std::int64_t last_order;
    bool mounted;
};

// hvl_t
struct Sequence {
    std::size_t count;
    void* items;
};

// The beginning of H5O_info1_t, with room for the rest.
struct ObjectInfo {
    unsigned long file;
    std::uint64_t address;
    int kind;
    unsigned references;
    std::int64_t times[4];
    hsize_t attribute_count;
    unsigned header_version;
    std::uint64_t rest[32];
};

struct Libhdf5 {
    hid_t (*open)(hid_t place, const char* path, hid_t access) = nullptr;
    Status (*close)(hid_t dataset) = nullptr;
    hid_t (*type_of)(hid_t dataset) = nullptr;
    hid_t (*space_of)(hid_t dataset) = nullptr;
    hid_t (*properties_of)(hid_t dataset) = nullptr;
    hsize_t (*stored_nbytes)(hid_t dataset) = nullptr;
    Status (*read)(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t transfer, void* values) = nullptr;
    Status (*chunk_count)(hid_t dataset, hid_t space, hsize_t* count) = nullptr;
    Status (*chunk_at)(hid_t dataset, hid_t space, hsize_t index, hsize_t* origin, unsigned* mask,
                       std::uint64_t* address, hsize_t* nbytes) = nullptr;
    hid_t (*create)(hid_t place, const char* name, hid_t type, hid_t space, hid_t link, hid_t properties,
                    hid_t access) = nullptr;
    Status (*write_chunk)(hid_t dataset, hid_t transfer, unsigned mask, const hsize_t* origin, std::size_t nbytes,
                          const void* bytes) = nullptr;
    // Null before HDF5 1.14, whose visitors take other types.
    Status (*visit_chunks)(hid_t dataset, hid_t transfer,
                           int (*visit)(const hsize_t* origin, unsigned mask, std::uint64_t address, hsize_t nbytes,
                                        void* data),
                           void* data) = nullptr;

    Status (*close_type)(hid_t type) = nullptr;
    int (*type_class)(hid_t type) = nullptr;
    std::size_t (*type_nbytes)(hid_t type) = nullptr;
    Status (*types_equal)(hid_t first, hid_t second) = nullptr;
    Status (*is_named)(hid_t type) = nullptr;
    hid_t (*base_of)(hid_t type) = nullptr;
    Status (*encode_type)(hid_t type, void* code, std::size_t* nbytes) = nullptr;
    Status (*is_variable_text)(hid_t type) = nullptr;

    hid_t (*create_space)(int rank, const hsize_t* extents, const hsize_t* maxima) = nullptr;
    Status (*close_space)(hid_t space) = nullptr;
    int (*space_class)(hid_t space) = nullptr;
    int (*space_rank)(hid_t space) = nullptr;
    int (*space_extents)(hid_t space, hsize_t* extents, hsize_t* maxima) = nullptr;
    std::int64_t (*space_count)(hid_t space) = nullptr;

    Status (*close_properties)(hid_t properties) = nullptr;
    int (*layout)(hid_t properties) = nullptr;
    int (*chunk_shape)(hid_t properties, int room, hsize_t* extents) = nullptr;
    Status (*chunk_options)(hid_t properties, unsigned* options) = nullptr;
    int (*external_count)(hid_t properties) = nullptr;
    int (*filter_count)(hid_t properties) = nullptr;
    int (*filter_at)(hid_t properties, unsigned index, unsigned* flags, std::size_t* count, unsigned* values,
                     std::size_t label_nbytes, char* label, unsigned* config) = nullptr;
    Status (*fill_state)(hid_t properties, int* state) = nullptr;
    Status (*fill_value)(hid_t properties, hid_t type, void* value) = nullptr;
    Status (*fill_time)(hid_t properties, int* when) = nullptr;
    Status (*attribute_order)(hid_t properties, unsigned* flags) = nullptr;
    Status (*attribute_phases)(hid_t properties, unsigned* most_compact, unsigned* least_dense) = nullptr;

    Status (*visit_attributes)(hid_t owner, int index, int order, hsize_t* position,
                               Status (*visit)(hid_t, const char* name, const AttributeInfo* info, void* data),
                               void* data) = nullptr;
    hid_t (*open_attribute)(hid_t owner, const char* name, hid_t access) = nullptr;
    Status (*close_attribute)(hid_t attribute) = nullptr;
    hid_t (*attribute_type)(hid_t attribute) = nullptr;
    hid_t (*attribute_space)(hid_t attribute) = nullptr;
    Status (*read_attribute)(hid_t attribute, hid_t type, void* values) = nullptr;
    hid_t (*create_attribute)(hid_t owner, const char* name, hid_t type, hid_t space, hid_t properties,
                              hid_t access) = nullptr;
    Status (*write_attribute)(hid_t attribute, hid_t type, const void* values) = nullptr;
    hid_t (*create_properties)(hid_t property_class) = nullptr;
    Status (*set_charset)(hid_t properties, int charset) = nullptr;
    const hid_t* attribute_properties = nullptr;  // their class
    hid_t (*open_object)(hid_t place, const char* path, hid_t access) = nullptr;
    Status (*close_object)(hid_t object) = nullptr;
    int (*kind)(hid_t object) = nullptr;
    std::ptrdiff_t (*comment)(hid_t object, char* text, std::size_t room) = nullptr;
    Status (*reclaim)(hid_t type, hid_t space, hid_t transfer, void* values) = nullptr;

    Status (*visit_links)(hid_t group, int index, int order, hsize_t* position,
                          Status (*visit)(hid_t, const char* name, const LinkInfo* info, void* data),
                          void* data) = nullptr;
    Status (*group_info)(hid_t group, GroupInfo* info) = nullptr;
    Status (*object_info)(hid_t object, ObjectInfo* info, unsigned fields) = nullptr;
    hid_t (*create_group)(hid_t place, const char* name, hid_t link, hid_t properties, hid_t access) = nullptr;

    // Of the library at a path, which is loaded already and stays so, and of those that it needs.
    explicit Libhdf5(const char* path) {
        library_ = system::loaded_library(path);
        complete_ = library_ != nullptr && bind_datasets() && bind_types_and_spaces() && bind_properties() &&
                    bind_attributes() && bind_groups();
        if (complete_ && is_1_14()) bind(visit_chunks, "H5Dchunk_iter");
    }

    // False where a call is absent.
    explicit operator bool() const { return complete_; }

private:
    template <class Function>
    bool bind(Function& function, const char* name) {
        function = reinterpret_cast<Function>(system::symbol(library_, name));
        return function != nullptr;
    }

    bool is_1_14() {
        Status (*version)(unsigned* major, unsigned* minor, unsigned* release) = nullptr;
        unsigned major = 0, minor = 0, release = 0;
        return bind(version, "H5get_libversion") && version(&major, &minor, &release) >= 0 &&
               (major > 1 || minor >= 14);
    }

    bool bind_datasets() {
        return bind(open, "H5Dopen2") && bind(close, "H5Dclose") && bind(type_of, "H5Dget_type") &&
               bind(space_of, "H5Dget_space") && bind(properties_of, "H5Dget_create_plist") &&
               bind(stored_nbytes, "H5Dget_storage_size") && bind(read, "H5Dread") &&
               bind(chunk_count, "H5Dget_num_chunks") && bind(chunk_at, "H5Dget_chunk_info") &&
               bind(create, "H5Dcreate2") && bind(write_chunk, "H5Dwrite_chunk");
    }

    bool bind_types_and_spaces() {
        return bind(close_type, "H5Tclose") && bind(type_class, "H5Tget_class") && bind(type_nbytes, "H5Tget_size") &&
               bind(types_equal, "H5Tequal") && bind(is_named, "H5Tcommitted") && bind(encode_type, "H5Tencode") &&
               bind(is_variable_text, "H5Tis_variable_str") && bind(base_of, "H5Tget_super") &&
               bind(create_space, "H5Screate_simple") && bind(close_space, "H5Sclose") &&
               bind(space_class, "H5Sget_simple_extent_type") && bind(space_rank, "H5Sget_simple_extent_ndims") &&
               bind(space_extents, "H5Sget_simple_extent_dims") && bind(space_count, "H5Sget_simple_extent_npoints");
    }

    bool bind_properties() {
        return bind(close_properties, "H5Pclose") && bind(layout, "H5Pget_layout") &&
               bind(chunk_shape, "H5Pget_chunk") && bind(chunk_options, "H5Pget_chunk_opts") &&
               bind(external_count, "H5Pget_external_count") && bind(filter_count, "H5Pget_nfilters") &&
               bind(filter_at, "H5Pget_filter2") && bind(fill_state, "H5Pfill_value_defined") &&
               bind(fill_value, "H5Pget_fill_value") && bind(fill_time, "H5Pget_fill_time") &&
               bind(attribute_order, "H5Pget_attr_creation_order") &&
               bind(attribute_phases, "H5Pget_attr_phase_change");
    }

    bool bind_attributes() {
        return bind(visit_attributes, "H5Aiterate2") && bind(open_attribute, "H5Aopen") &&
               bind(close_attribute, "H5Aclose") && bind(attribute_type, "H5Aget_type") &&
               bind(attribute_space, "H5Aget_space") && bind(read_attribute, "H5Aread") &&
               bind(create_attribute, "H5Acreate2") && bind(write_attribute, "H5Awrite") &&
               bind(create_properties, "H5Pcreate") && bind(set_charset, "H5Pset_char_encoding") &&
               bind(attribute_properties, "H5P_CLS_ATTRIBUTE_CREATE_ID_g") && bind(open_object, "H5Oopen") &&
               bind(close_object, "H5Oclose") && bind(kind, "H5Iget_type") && bind(comment, "H5Oget_comment") &&
               (bind(reclaim, "H5Treclaim") || bind(reclaim, "H5Dvlen_reclaim"));
    }

    bool bind_groups() {
        return (bind(visit_links, "H5Literate1") || bind(visit_links, "H5Literate")) &&
               bind(group_info, "H5Gget_info") && bind(object_info, "H5Oget_info2") && bind(create_group, "H5Gcreate2");
    }

    system::SharedLibrary library_ = nullptr;  // kept open: what it leads to must stay
    bool complete_ = false;
};

// An identifier that is closed with its scope.
class Id {
public:
    Id(hid_t id, Status (*close)(hid_t)) : id_(id), close_(close) {}
    ~Id() {
        if (id_ >= 0) close_(id_);
    }
    Id(const Id&) = delete;
    Id& operator=(const Id&) = delete;

    operator hid_t() const { return id_; }
    bool valid() const { return id_ >= 0; }
    // The identifier, which the caller closes.
    hid_t release() { return std::exchange(id_, -1); }

private:
    hid_t id_;
    Status (*close_)(hid_t);
};

}  // namespace tamis::datasets
