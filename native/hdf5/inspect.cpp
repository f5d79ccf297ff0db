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
    return refuse(hdf5, function, minor,
                  Message::format("zfp: expected 4- or 8-byte IEEE floats or integers, got datatype class %d of %zu "
                                  "bytes; use shuffle and deflate for such a dataset",
                                  hdf5.type_class(type), hdf5.type_size(type)));
}

// "4x1x6" of a chunk; with `kept`, axes beyond the last four longer than one become 1.
Message shape_text(const hsize_t* extents, unsigned rank, unsigned kept) {
    constexpr std::size_t longest = sizeof "x18446744073709551615";
    Message text;
    std::size_t at = 0;
    unsigned longer = 0;
    for (unsigned axis = 0; axis < rank; ++axis) longer += extents[axis] > 1;
    for (unsigned axis = 0; axis < rank && at < sizeof text.text - longest; ++axis) {
        const bool squeeze = extents[axis] > 1 && longer-- > kept;
        at += static_cast<std::size_t>(std::snprintf(text.text + at, sizeof text.text - at,
                                                     axis == 0 ? "%llu" : "x%llu", squeeze ? 1ULL : extents[axis]));
    }
    return text;
}

bool examine_space(const Hdf5& hdf5, const char* function, hid_t space, Chunk& chunk) {
    constexpr const char* minor = "H5E_BADVALUE_g";
    hsize_t extents[max_axes];
    const int rank = hdf5.space_rank(space);
    if (rank < 0 || rank > static_cast<int>(max_axes) || hdf5.space_extents(space, extents, nullptr) < 0)
        return refuse(hdf5, function, minor, Message::format("zfp: the chunk has no simple dataspace"));
    const auto axes = static_cast<unsigned>(rank);
    unsigned longer = 0;
    for (unsigned axis = 0; axis < axes; ++axis) longer += extents[axis] > 1;
    const Message shape = shape_text(extents, axes, max_axes);
    if (longer == 0)
        return refuse(hdf5, function, minor,
                      Message::format("zfp: expected a chunk of more than one value, got %s; use chunks of at least 4 "
                                      "values along an axis",
                                      shape.text));
    if (longer > zfp::max_rank)
        return refuse(hdf5, function, minor,
                      Message::format("zfp: expected a chunk with 1 to 4 axes longer than 1, got %s with %u; use %s",
                                      shape.text, longer, shape_text(extents, axes, zfp::max_rank).text));
    std::array<std::size_t, zfp::max_rank> fastest_first{1, 1, 1, 1};
    unsigned used = 0;
    for (unsigned axis = axes; axis-- > 0;)
        if (extents[axis] > 1) fastest_first[used++] = static_cast<std::size_t>(extents[axis]);
    const hsize_t limit = zfp::max_extent(used);
    for (unsigned axis = 0; axis < used; ++axis)
        if (fastest_first[axis] > limit)
            return refuse(hdf5, function, minor,
                          Message::format("zfp: chunk %s has an axis of %zu, the ZFP header takes at most %llu for %u "
                                          "axes longer than 1; use a chunk of at most %llu along it",
                                          shape.text, fastest_first[axis], limit, used, limit));
    chunk.layout = Layout::contiguous(used, fastest_first);
    return true;
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
