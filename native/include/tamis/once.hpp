// A value that is made once per process, when it is first asked for.
#pragma once

#include <sched.h>

#include <atomic>

namespace tamis {

// A local `static` does the same with guards that are part of the C++ runtime. This needs none, so that programs in C
// and Fortran link the static library of the filter without one. Has to be `constinit static`.
template <class T>
class Once {
    enum State { absent, in_work, present };
    std::atomic<State> state{absent};
    T value{};

public:
    template <class Make>
    const T& get(const Make& make) {
        State seen = state.load(std::memory_order_acquire);
        if (seen == present) return value;
        if (seen == absent && state.compare_exchange_strong(seen, in_work, std::memory_order_acquire)) {
            value = make();
            state.store(present, std::memory_order_release);
        }
        while (state.load(std::memory_order_acquire) != present) sched_yield();
        return value;
    }
};

}  // namespace tamis
