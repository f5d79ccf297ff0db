#include "hdf5/inspect.hpp"

namespace tamis::hdf5 {

namespace {

struct NamedType {
    const char* native;
    const char* foreign;
    std::size_t nbytes;
    Type type;
    bool is_unsigned;
};

constexpr bool little = std::endian::native == std::endian::little;

template <std::size_t n>
constexpr NamedType named(const char (&le)[n], const char (&be)[n], std::size_t nbytes, Type type, bool is_unsigned) {
    return {little ? le : be, little ? be : le, nbytes, type, is_unsigned};
}

constexpr NamedType types[] = {
    named("H5T_IEEE_F32LE_g", "H5T_IEEE_F32BE_g", 4, Type::float32, false),
    named("H5T_IEEE_F64LE_g", "H5T_IEEE_F64BE_g", 8, Type::float64, false),
    named("H5T_STD_I32LE_g", "H5T_STD_I32BE_g", 4, Type::int32, false),
    named("H5T_STD_I64LE_g", "H5T_STD_I64BE_g", 8, Type::int64, false),
    named("H5T_STD_U32LE_g", "H5T_STD_U32BE_g", 4, Type::int32, true),
    named("H5T_STD_U64LE_g", "H5T_STD_U64BE_g", 8, Type::int64, true),
};

bool examine_type(const Hdf5& hdf5, const char* function, hid_t type, Chunk& chunk) {
    constexpr const char* minor = "H5E_BADTYPE_g";
    if (type < 0)
        return refuse(hdf5, function, minor,
                      Message::format("zfp: filters values of a dataset, and cannot be used on a group"));
    for (const NamedType& known : types) {
        if (hdf5.type_equal(type, hdf5.variable(known.native)) > 0) {
            chunk.type = known.type;
            chunk.is_unsigned = known.is_unsigned;
            return true;
        }
        if (hdf5.type_equal(type, hdf5.variable(known.foreign)) > 0)
            return refuse(hdf5, function, minor,
                          Message::format("zfp: endian targeting is refused: expected %s-endian values as on this "
                                          "machine, got %s-endian; create the dataset with the native type",
                                          little ? "little" : "big", little ? "big" : "little"));
    }
    const int type_class = hdf5.type_class(type);
    const std::size_t nbytes = hdf5.type_size(type);
    const bool is_number = type_class == class_integer || type_class == class_float;
    const char* expected = !is_number                   ? "requires datatype class of H5T_FLOAT or H5T_INTEGER"
                           : nbytes != 4 && nbytes != 8 ? "requires datatype size of 4 or 8"
                                                        : "expected 4- or 8-byte IEEE floats or integers";
    return refuse(hdf5, function, minor,
                  Message::format("zfp: %s, got datatype class %d of %zu bytes; use shuffle and deflate for such a "
                                  "dataset",
                                  expected, type_class, nbytes));
}

bool examine_space(const Hdf5& hdf5, const char* function, hid_t space, Chunk& chunk) {
    constexpr const char* minor = "H5E_BADVALUE_g";
    hsize_t extents[max_axes];
    const int rank = hdf5.space_rank(space);
    if (rank < 0 || rank > static_cast<int>(max_axes) || hdf5.space_extents(space, extents, nullptr) < 0)
        return refuse(hdf5, function, minor, Message::format("zfp: the chunk has no simple dataspace"));
    const Message why = layout_of_chunk({extents, static_cast<std::size_t>(rank)}, chunk.layout);
    return why.empty() || refuse(hdf5, function, minor, why);
}

// Whatever runs before zfp on writing hands it bytes that are no values any more.
bool examine_pipeline(const Hdf5& hdf5, const char* function, hid_t dcpl) {
    unsigned flags = 0, config = 0;
    char name[64] = "";
    std::size_t count = 0;
    const int first = hdf5.filter_at(dcpl, 0, &flags, &count, nullptr, sizeof name, name, &config);
    if (first != filter_id)
        return refuse(hdf5, function, "H5E_BADVALUE_g",
                      Message::format("zfp: expected to be the first filter of the pipeline, got filter %d (%s) before "
                                      "it; put shuffle, deflate and fletcher32 after zfp or leave them out",
                                      first, name));
    const int filters = hdf5.filter_count(dcpl);
    for (unsigned i = 1; static_cast<int>(i) < filters; ++i) {
        count = 0;
        if (hdf5.filter_at(dcpl, i, &flags, &count, nullptr, sizeof name, name, &config) == filter_id)
            return refuse(hdf5, function, "H5E_BADVALUE_g",
                          Message::format("zfp: expected once in a pipeline, got it again as filter number %u", i + 1));
    }
    return true;
}

}  // namespace

bool inspect(const Hdf5& hdf5, const char* function, hid_t dcpl, hid_t type, hid_t space, Chunk& chunk) {
    return hdf5.complete() && examine_type(hdf5, function, type, chunk) &&
           examine_space(hdf5, function, space, chunk) && examine_pipeline(hdf5, function, dcpl);
}

bool takes_bytes_for_other_numbers(const Hdf5& hdf5, hid_t dcpl, hid_t type) {
    unsigned values[max_stored] = {}, flags = 0, config = 0;
    std::size_t count = max_stored;
    Stored stored;
    if (hdf5.filter_by_id(dcpl, filter_id, &flags, &count, values, 0, nullptr, &config) < 0) return false;
    const CdValues found{values, std::min(count, max_stored)};
    if (!is_stored(found) || !parse_stored(found, stored) || stored.swapped) return false;
    for (const NamedType& known : types)
        if (hdf5.type_equal(type, hdf5.variable(known.foreign)) > 0) return true;
    return false;
}

}  // namespace tamis::hdf5
