#include "hdf5/order.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "tamis/hdf5/cd_values.hpp"

namespace tamis::hdf5 {

namespace {

constexpr int deflate = 1, shuffle = 2, fletcher32 = 3, bzip2 = 307, lz4 = 32004, zstd = 32015;
constexpr std::size_t max_filters = 32;

struct Entry {
    int id = -1;
    unsigned flags = 0;
    std::size_t count = 0;
    std::array<unsigned, 16> values{};
};

struct List {
    std::array<Entry, max_filters> entries{};
    std::size_t count = 0;

    std::span<Entry> all() { return {entries.data(), count}; }
};

// False if there are more filters or parameters than the few that netCDF itself moves and that may follow them.
bool read_list(const Hdf5& hdf5, hid_t dcpl, List& list) {
    const int filters = hdf5.filter_count(dcpl);
    if (filters < 2 || static_cast<std::size_t>(filters) > max_filters) return false;
    for (unsigned i = 0; static_cast<int>(i) < filters; ++i) {
        Entry& entry = list.entries[list.count++];
        unsigned config = 0;
        entry.count = entry.values.size();
        entry.id = hdf5.filter_at(dcpl, i, &entry.flags, &entry.count, entry.values.data(), 0, nullptr, &config);
        if (entry.id < 0 || entry.count > entry.values.size()) return false;
    }
    return true;
}

bool is_moved_by_netcdf(const Entry& entry) {
    return entry.id == fletcher32 || entry.id == shuffle || entry.id == deflate;
}

// HDF5 calls set_local in a loop over the list, and does not call it for filters that move meanwhile to places behind
// that of the loop. These filters have no set_local.
bool has_no_set_local(const Entry& entry) {
    constexpr int ids[] = {deflate, fletcher32, bzip2, lz4, zstd};
    return std::ranges::find(ids, entry.id) != std::end(ids);
}

bool append(const Hdf5& hdf5, hid_t dcpl, const Entry& entry) {
    return hdf5.set_filter(dcpl, entry.id, entry.flags, entry.count, entry.values.data()) >= 0;
}

}  // namespace

bool restore_order(const Hdf5& hdf5, const char* function, hid_t dcpl) {
    List list;
    if (!hdf5.complete() || !read_list(hdf5, dcpl, list)) return true;
    const std::span<Entry> all = list.all();
    const auto zfp = std::ranges::find(all, filter_id, &Entry::id);
    if (zfp == all.begin() || zfp == all.end() || !is_stored({zfp->values.data(), zfp->count})) return true;
    const std::span<Entry> before(all.begin(), zfp), after(zfp + 1, all.end());
    if (!std::ranges::all_of(before, is_moved_by_netcdf) || !std::ranges::all_of(after, has_no_set_local)) return true;

    bool done = true;
    for (const Entry& entry : all)
        if (entry.id != filter_id) done = done && hdf5.remove_filter(dcpl, entry.id) >= 0;
    for (const int id : {shuffle, deflate, 0, fletcher32})
        for (const Entry& entry : id == 0 ? after : before)
            if (id == 0 || entry.id == id) done = done && append(hdf5, dcpl, entry);
    return done || refuse(hdf5, function, "H5E_CANTINIT_g", Message::format("zfp: cannot reorder the filters"));
}

}  // namespace tamis::hdf5
