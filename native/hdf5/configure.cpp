#include "hdf5/configure.hpp"

#include "hdf5/controls.hpp"
#include "hdf5/settings.hpp"

namespace tamis::hdf5 {

namespace {

bool has_chosen_fill(const Hdf5& hdf5, hid_t dcpl) {
    int status = 0;
    return hdf5.fill_defined(dcpl, &status) >= 0 && status == fill_user_defined;
}

// The bits of a fill value that somebody chose. The default, 0, is a value like any other.
std::optional<std::uint64_t> chosen_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, Type scalar) {
    std::uint64_t wide = 0;
    std::uint32_t narrow = 0;
    const bool is_wide = zfp::item_nbytes(scalar) == 8;
    if (!has_chosen_fill(hdf5, dcpl)) return std::nullopt;
    if (hdf5.fill_value(dcpl, type, is_wide ? static_cast<void*>(&wide) : &narrow) < 0) return std::nullopt;
    return is_wide ? wide : narrow;
}

bool asks_for_no_proof(CdValues requested) {
    Stored stored;
    return is_stored(requested) && parse_stored(requested, stored) && !stored.proven;
}

// Note behind the header what the filter has to know, because it gets nothing but these words.
Status append_proof(const Hdf5& hdf5, hid_t dcpl, hid_t type, CdValues requested, const Chunk& chunk, int minexp,
                    unsigned (&stored)[max_stored], std::size_t& count) {
    if (hdf5.has_property(dcpl, unproven_property) > 0 || asks_for_no_proof(requested))
        return append_unproven(stored, count);
    const auto fill = chosen_fill(hdf5, dcpl, type, chunk.type);
    return fill && zfp::needs_care(chunk.type, minexp, *fill) ? append_fill(*fill, stored, count) : Status{};
}

}  // namespace

bool configure(const Hdf5& hdf5, const char* function, hid_t dcpl, hid_t type, const Chunk& chunk) {
    constexpr std::size_t most = 64;
    unsigned values[most] = {}, flags = 0, config = 0;
    std::size_t count = most;
    if (hdf5.filter_by_id(dcpl, filter_id, &flags, &count, values, 0, nullptr, &config) < 0)
        return refuse(hdf5, function, "H5E_CANTGET_g", Message::format("zfp: cannot read the filter's parameters"));
    if (count == 0) request_of_controls(hdf5, dcpl, std::span(values).first<max_requested>(), count);
    const CdValues requested{values, std::min(count, most)};
    Params params;
    unsigned stored[max_stored] = {};
    if (const Message why = stored_of_request(requested, chunk, params, stored, count); !why.empty())
        return refuse(hdf5, function, "H5E_BADVALUE_g", why);
    Status status;
    if (zfp::promises_accuracy(params, chunk.type, chunk.layout.rank) && proves_chunks())
        status = append_proof(hdf5, dcpl, type, requested, chunk, params.minexp, stored, count);
    if (!status) return refuse(hdf5, function, "H5E_BADVALUE_g", describe(status, chunk.type));
    // HDF5 completes a chunk that was written in part with the fill value. A lossy mode cannot keep every fill value
    // beside others, and HDF5 loses the whole chunk where a required filter fails: an optional one leaves that chunk
    // unfiltered.
    if (!params.lossless() && has_chosen_fill(hdf5, dcpl)) flags |= flag_optional;
    if (hdf5.modify_filter(dcpl, filter_id, flags, count, stored) < 0)
        return refuse(hdf5, function, "H5E_CANTINIT_g", Message::format("zfp: cannot store the filter's parameters"));
    return true;
}

}  // namespace tamis::hdf5
