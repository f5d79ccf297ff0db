// HDF5 filter 32013: its three callbacks. netCDF calls the last one for chunks of its Zarr stores, too; nczarr.cpp
// has the other functions that it calls.
//
// Whatever is wrong with type, chunk, pipeline or parameters fails in H5Dcreate, for optional filters too: HDF5 would
// store every chunk unfiltered without a word. Only the data themselves can fail later; HDF5 then leaves the chunk as
// it is (optional) or reports our message (required).

#include "hdf5/callbacks.hpp"

#include "hdf5/configure.hpp"
#include "hdf5/filter.hpp"
#include "hdf5/order.hpp"
#include "hdf5/settings.hpp"

namespace tamis::hdf5 {

namespace {

// HDF5 asks when a dataset is created, and again before the first write to one that was opened. set_local refuses
// datasets that cannot be created; existing ones must stay writable, unless that would do more harm.
htri_t can_apply(hid_t dcpl, hid_t type, hid_t) {
    const Hdf5* const hdf5 = Hdf5::of(__builtin_return_address(0));
    if (type < 0 || hdf5 == nullptr || !hdf5->complete() || !takes_bytes_for_other_numbers(*hdf5, dcpl, type)) return 1;
    refuse(*hdf5, "can_apply", "H5E_BADTYPE_g",
           Message::format("zfp: the writer of this dataset misread its bytes in this machine's byte order; "
                           "copy what remains of it to a dataset of the native type"));
    return -1;
}

herr_t set_local(hid_t dcpl, hid_t type, hid_t space) {
    const Hdf5* const hdf5 = Hdf5::of(__builtin_return_address(0));
    Chunk chunk;
    return hdf5 != nullptr && restore_order(*hdf5, "set_local", dcpl) &&
                   inspect(*hdf5, "set_local", dcpl, type, space, chunk) &&
                   configure(*hdf5, "set_local", dcpl, type, chunk)
               ? 0
               : -1;
}

std::size_t filter(unsigned flags, std::size_t count, const unsigned* values, std::size_t nbytes,
                   std::size_t* buffer_nbytes, void** buffer) {
    const void* caller = __builtin_return_address(0);
    Stored stored;
    const Status status = parse_stored({values, count}, stored);
    const auto* in = static_cast<const std::uint8_t*>(*buffer);
    const bool reading = (flags & flag_reverse) != 0;
    Outcome outcome = !status   ? failure(describe(status, stored.header.type))
                      : reading ? decode(stored, in, nbytes)
                                : encode(stored, in, nbytes);
    if (outcome.unfiltered) return nbytes;
    if (!outcome.buffer) {
        Hdf5(caller).push_error("filter", reading ? "H5E_READERROR_g" : "H5E_CANTFILTER_g", outcome.error.text);
        if (stored.in_zarr) print_error(outcome.error);
        return 0;
    }
    std::free(*buffer);
    *buffer = outcome.buffer.release();
    *buffer_nbytes = outcome.allocated;
    return outcome.nbytes;
}

}  // namespace

const FilterClass filter_class{1, filter_id, 1, 1, "H5Z-ZFP 1.1.1 (tamis, ZFP codec 5)", can_apply, set_local, filter};

}  // namespace tamis::hdf5
