// The codec of filter 32013 for netCDF's Zarr stores: its parameters in JSON, and those of a variable, which set_local
// makes in HDF5. What fails is an error of netCDF, whose text goes to HDF5's error stack and to the terminal: netCDF
// has no place for it.

#include "hdf5/nczarr.hpp"

#include <cstdlib>

#include "hdf5/codec_json.hpp"
#include "hdf5/interface.hpp"
#include "hdf5/settings.hpp"
#include "tamis/zfp/proof.hpp"

namespace tamis::hdf5 {

namespace {

int report(const void* caller, const char* function, const Message& message) {
    Hdf5(caller).push_error(function, "H5E_BADVALUE_g", message.text);
    print_error(message);
    return nc_efilter;
}

// Copy items to memory that netCDF frees.
template <class Item>
bool copy_out(std::span<const Item> items, Item*& out) {
    auto* memory = static_cast<Item*>(std::malloc(items.size_bytes()));
    if (memory == nullptr) return false;
    std::memcpy(memory, items.data(), items.size_bytes());
    std::free(out);
    out = memory;
    return true;
}

Message type_of_variable(const NetCdf& netcdf, int ncid, int varid, int type, Chunk& chunk) {
    constexpr bool little = std::endian::native == std::endian::little;
    constexpr int foreign = little ? nc_endian_big : nc_endian_little;
    const bool is_float = type == nc_float || type == nc_double, is_wide = type == nc_int64 || type == nc_uint64;
    chunk.is_unsigned = type == nc_uint || type == nc_uint64;
    if (!is_float && !is_wide && type != nc_int && type != nc_uint)
        return Message::format(
            "zfp: expected a variable of type float, double, int, int64, uint or uint64, got netCDF's type %d; use "
            "shuffle and deflate for such a variable",
            type);
    chunk.type = type == nc_float ? Type::float32 : is_float ? Type::float64 : is_wide ? Type::int64 : Type::int32;
    int endian = 0;
    if (netcdf.inq_endian(ncid, varid, &endian) != nc_noerr)
        return Message::format("zfp: netCDF does not report the byte order of the variable");
    if (endian == foreign)
        return Message::format(
            "zfp: endian targeting is refused: expected %s-endian values as on this machine, got %s-endian; define the "
            "variable with the native byte order",
            little ? "little" : "big", little ? "big" : "little");
    return {};
}

Message chunk_of_variable(const NetCdf& netcdf, int ncid, int varid, Chunk& chunk) {
    int type = 0, rank = 0, storage = -1;
    if (netcdf.inq_var(ncid, varid, nullptr, &type, &rank, nullptr, nullptr) != nc_noerr)
        return Message::format("zfp: netCDF does not report the type of the variable");
    if (Message why = type_of_variable(netcdf, ncid, varid, type, chunk); !why.empty()) return why;
    if (rank < 1 || rank > static_cast<int>(max_axes))
        return Message::format("zfp: expected a variable of 1 to %u axes, got %d", max_axes, rank);
    std::size_t sizes[max_axes] = {};
    if (netcdf.inq_chunking(ncid, varid, &storage, sizes) != nc_noerr || storage != nc_chunked)
        return Message::format("zfp: expected a variable in chunks; give it chunk sizes");
    unsigned long long extents[max_axes];
    std::copy_n(sizes, rank, extents);
    return layout_of_chunk({extents, static_cast<std::size_t>(rank)}, chunk.layout);
}

// netCDF keeps filters in the order of the calls, and runs them so.
Message check_pipeline(const NetCdf& netcdf, int ncid, int varid) {
    constexpr std::size_t most = 64;
    unsigned ids[most] = {};
    std::size_t count = 0;
    if (netcdf.inq_filters(ncid, varid, &count, nullptr) != nc_noerr || count == 0 || count > most ||
        netcdf.inq_filters(ncid, varid, &count, ids) != nc_noerr)
        return Message::format("zfp: expected 1 to %zu filters of the variable, got %zu", most, count);
    if (ids[0] != filter_id)
        return Message::format(
            "zfp: expected to be the first filter of the variable, got filter %u before it; define shuffle, deflate "
            "and fletcher32 after zfp or leave them out",
            ids[0]);
    if (std::find(ids + 1, ids + count, filter_id) != ids + count)
        return Message::format("zfp: expected once among the filters of the variable, got it twice");
    return {};
}

// What the filter has to know besides the header: that it is in Zarr, and what to prove.
void add_zarr_words(const NetCdf& netcdf, int ncid, int varid, const Header& header, bool proven, Words& words) {
    std::uint64_t wide = 0;
    std::uint32_t narrow = 0;
    const bool is_wide = zfp::item_nbytes(header.type) == 8;
    unsigned flags = proven ? 0 : zarr_unproven;
    int no_fill = 1;
    if (proven && zfp::promises_accuracy(header.params, header.type, header.layout.rank) &&
        netcdf.inq_fill(ncid, varid, &no_fill, is_wide ? static_cast<void*>(&wide) : &narrow) == nc_noerr) {
        if (!is_wide) wide = narrow;
        if (no_fill == 0 && zfp::needs_care(header.type, header.params.minexp, wide)) flags |= zarr_has_fill;
    }
    for (const unsigned word : {static_cast<unsigned>(wide), static_cast<unsigned>(wide >> 32), zarr_word | flags})
        words.values[words.count++] = word;
}

bool same_chunk(const Header& a, const Header& b) {
    return a.type == b.type && a.layout.rank == b.layout.rank && a.layout.extent == b.layout.extent;
}

// The parameters of a variable, which its user sees, and those that its chunks are filtered with.
Message parameters_of_variable(const NetCdf& netcdf, int ncid, int varid, CdValues requested, Words& visible,
                               Words& working) {
    if (!netcdf.complete())
        return Message::format("zfp: the netCDF library exports no functions that describe a variable");
    Chunk chunk;
    if (Message why = chunk_of_variable(netcdf, ncid, varid, chunk); !why.empty()) return why;
    if (Message why = check_pipeline(netcdf, ncid, varid); !why.empty()) return why;
    Header header{chunk.type, chunk.layout, {}, 0};
    unsigned stored[max_stored];
    if (Message why = stored_of_request(requested, chunk, header.params, stored, visible.count); !why.empty())
        return why;
    Stored before;
    const bool had_header = is_stored(requested) && parse_stored(requested, before);
    if (had_header && requested.back() == from_json_word && !same_chunk(before.header, header))
        return Message::format("zfp: the dtype or shape of codec %s is not that of the array: its metadata are damaged",
                               codec_id);
    std::copy_n(stored, visible.count, visible.values);
    working = visible;
    const bool proven = !had_header || before.proven;
    add_zarr_words(netcdf, ncid, varid, header, proven, working);
    if (!proven && visible.count < max_stored) visible.values[visible.count++] = unproven_word;
    return {};
}

int codec_to_hdf5(const char* json, std::size_t* count, unsigned** values) {
    const void* caller = __builtin_return_address(0);
    if (json == nullptr || count == nullptr || values == nullptr) return nc_efilter;
    Words words;
    if (const Message why = words_of_json(json, words); !why.empty()) return report(caller, "codec_to_hdf5", why);
    unsigned* copy = nullptr;  // what the caller passes may hold anything
    if (!copy_out(words.span(), copy)) return nc_enomem;
    *values = copy;
    *count = words.count;
    return nc_noerr;
}

int hdf5_to_codec(std::size_t count, const unsigned* values, char** json) {
    const void* caller = __builtin_return_address(0);
    if (json == nullptr || (count > 0 && values == nullptr)) return nc_efilter;
    Json written;
    if (const Message why = json_of_words({values, count}, written); !why.empty())
        return report(caller, "hdf5_to_codec", why);
    char* copy = nullptr;
    if (!copy_out(std::span<const char>(written.text, std::strlen(written.text) + 1), copy)) return nc_enomem;
    *json = copy;
    return nc_noerr;
}

int modify_parameters(int ncid, int varid, std::size_t* visible_count, unsigned** visible, std::size_t* working_count,
                      unsigned** working) {
    const void* caller = __builtin_return_address(0);
    if (visible_count == nullptr || visible == nullptr || working_count == nullptr || working == nullptr ||
        (*visible_count > 0 && *visible == nullptr))
        return nc_efilter;
    Words seen, used;
    const Message why = parameters_of_variable(NetCdf(caller), ncid, varid, {*visible, *visible_count}, seen, used);
    if (!why.empty()) return report(caller, "modify_parameters", why);
    unsigned* copy = nullptr;
    if (!copy_out(used.span(), copy)) return nc_enomem;
    if (!copy_out(seen.span(), *visible)) {
        std::free(copy);
        return nc_enomem;
    }
    *visible_count = seen.count;
    std::free(*working);
    *working = copy;
    *working_count = used.count;
    return nc_noerr;
}

constexpr CodecClass codec_class{
    1, 1, codec_id, filter_id, nullptr, nullptr, codec_to_hdf5, hdf5_to_codec, modify_parameters};

}  // namespace

}  // namespace tamis::hdf5

extern "C" {

[[gnu::visibility("default")]] const void* NCZ_get_codec_info() { return &tamis::hdf5::codec_class; }
}
