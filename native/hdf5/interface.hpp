// The part of HDF5's binary interface that a filter needs, and the calls of it, bound to the library that called us.
//
// Types and numbers below are those of HDF5 1.10 to 2.x (H5public.h, H5Zpublic.h, H5Tpublic.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "hdf5/library.hpp"
#include "tamis/hdf5/messages.hpp"

namespace tamis::hdf5 {

using hid_t = std::int64_t;
using herr_t = int;
using htri_t = int;
using hsize_t = unsigned long long;

inline constexpr int class_integer = 0, class_float = 1;  // H5T_class_t
inline constexpr int fill_user_defined = 2;               // H5D_fill_value_t
inline constexpr unsigned flag_optional = 0x0001, flag_reverse = 0x0100;
inline constexpr int filter_id = 32013;
inline constexpr unsigned max_axes = 32;  // H5S_MAX_RANK

// H5Z_class2_t
struct FilterClass {
    int version;
    int id;
    unsigned encoder_present;
    unsigned decoder_present;
    const char* name;
    htri_t (*can_apply)(hid_t dcpl, hid_t type, hid_t space);
    herr_t (*set_local)(hid_t dcpl, hid_t type, hid_t space);
    std::size_t (*filter)(unsigned flags, std::size_t count, const unsigned* values, std::size_t nbytes,
                          std::size_t* buffer_nbytes, void** buffer);
};

// Major and minor error numbers are variables of the library: their names are looked up as they are needed.
class Hdf5 {
public:
    // The libhdf5 that holds `caller`, a return address, or that is linked by the library that holds it.
    explicit Hdf5(const void* caller);

    // The same, bound once for each caller: HDF5 asks for every dataset, and binding all calls takes as long as half
    // of H5Dcreate. The library stays loaded for as long as this plugin. Null without memory.
    static const Hdf5* of(const void* caller);

    // False where the program links HDF5 statically and exports none of it.
    bool complete() const { return complete_; }

    // Put a message on the library's error stack, under H5E_PLINE.
    void push_error(const char* function, const char* minor, const char* message) const;

    // The identifier in a library variable such as H5T_IEEE_F32LE_g, or -1.
    hid_t variable(const char* name) const;

    int (*type_class)(hid_t type) = nullptr;
    std::size_t (*type_size)(hid_t type) = nullptr;
    htri_t (*type_equal)(hid_t a, hid_t b) = nullptr;
    int (*space_rank)(hid_t space) = nullptr;
    int (*space_extents)(hid_t space, hsize_t* extents, hsize_t* maximum) = nullptr;
    int (*filter_count)(hid_t dcpl) = nullptr;
    int (*filter_at)(hid_t dcpl, unsigned index, unsigned* flags, std::size_t* count, unsigned* values,
                     std::size_t name_nbytes, char* name, unsigned* config) = nullptr;
    herr_t (*filter_by_id)(hid_t dcpl, int id, unsigned* flags, std::size_t* count, unsigned* values,
                           std::size_t name_nbytes, char* name, unsigned* config) = nullptr;
    herr_t (*modify_filter)(hid_t dcpl, int id, unsigned flags, std::size_t count, const unsigned* values) = nullptr;
    herr_t (*remove_filter)(hid_t dcpl, int id) = nullptr;
    herr_t (*set_filter)(hid_t dcpl, int id, unsigned flags, std::size_t count, const unsigned* values) = nullptr;
    herr_t (*fill_defined)(hid_t dcpl, int* status) = nullptr;
    herr_t (*fill_value)(hid_t dcpl, hid_t type, void* value) = nullptr;
    htri_t (*has_property)(hid_t plist, const char* name) = nullptr;
    herr_t (*property_size)(hid_t plist, const char* name, std::size_t* nbytes) = nullptr;
    herr_t (*property)(hid_t plist, const char* name, void* value) = nullptr;

private:
    Library library_;
    herr_t (*push_)(hid_t stack, const char* file, const char* function, unsigned line, hid_t class_id, hid_t major,
                    hid_t minor, const char* format, ...) = nullptr;
    hid_t (*create_stack_)() = nullptr;
    herr_t (*set_stack_)(hid_t stack) = nullptr;  // closes it
    bool complete_ = false;
};

// False, after the library was told.
inline bool refuse(const Hdf5& hdf5, const char* function, const char* minor, const Message& message) {
    hdf5.push_error(function, minor, message.text);
    return false;
}

}  // namespace tamis::hdf5
