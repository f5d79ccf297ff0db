#include "hdf5/interface.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace tamis::hdf5 {

namespace {

struct Bound {
    const void* caller;
    Hdf5 hdf5;
    Bound* next;
};

// Grows at the front without a lock, which a fork could leave locked. Two threads may bind a caller twice. By malloc:
// the static library needs no C++ runtime.
struct BoundList {
    std::atomic<Bound*> first{nullptr};
    ~BoundList() {
        for (Bound* at = first; at != nullptr;) {
            Bound* const next = at->next;
            at->~Bound();
            std::free(at);
            at = next;
        }
    }
};

BoundList bound_list;

}  // namespace

const Hdf5* Hdf5::of(const void* caller) {
    Bound* first = bound_list.first.load(std::memory_order_acquire);
    for (const Bound* at = first; at != nullptr; at = at->next)
        if (at->caller == caller) return &at->hdf5;
    void* const memory = std::malloc(sizeof(Bound));
    if (memory == nullptr) return nullptr;
    auto* const added = ::new (memory) Bound{caller, Hdf5(caller), first};
    while (!bound_list.first.compare_exchange_weak(added->next, added, std::memory_order_acq_rel)) continue;
    return &added->hdf5;
}

Hdf5::Hdf5(const void* caller) : library_(caller) {
    const auto bind = [&](auto& function, const char* name) { return library_.bind(function, name); };
    complete_ = bind(push_, "H5Epush2") & bind(create_stack_, "H5Ecreate_stack") &
                bind(set_stack_, "H5Eset_current_stack") & bind(type_class, "H5Tget_class") &
                bind(type_size, "H5Tget_size") & bind(type_equal, "H5Tequal") &
                bind(space_rank, "H5Sget_simple_extent_ndims") & bind(space_extents, "H5Sget_simple_extent_dims") &
                bind(filter_count, "H5Pget_nfilters") & bind(filter_at, "H5Pget_filter2") &
                bind(filter_by_id, "H5Pget_filter_by_id2") & bind(modify_filter, "H5Pmodify_filter") &
                bind(remove_filter, "H5Premove_filter") & bind(set_filter, "H5Pset_filter") &
                bind(fill_defined, "H5Pfill_value_defined") & bind(fill_value, "H5Pget_fill_value") &
                bind(has_property, "H5Pexist") & bind(property_size, "H5Pget_size") & bind(property, "H5Pget");
}

hid_t Hdf5::variable(const char* name) const {
    const void* address = library_.symbol(name);
    return address == nullptr ? -1 : *static_cast<const hid_t*>(address);
}

void Hdf5::push_error(const char* function, const char* minor, const char* message) const {
    if (push_ == nullptr || create_stack_ == nullptr || set_stack_ == nullptr) return;
    // HDF5 1.14 and 2.0 pause the current stack while a filter runs, and drop what is pushed there; a stack of our own
    // takes the message and then becomes the current one.
    const hid_t stack = create_stack_();
    if (stack < 0) return;
    push_(stack, "tamis", function, 0, variable("H5E_ERR_CLS_g"), variable("H5E_PLINE_g"), variable(minor), "%s",
          message);
    set_stack_(stack);
}

}  // namespace tamis::hdf5
