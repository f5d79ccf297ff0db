// A value that is made when it is first asked for, and is the same whoever makes it.
#pragma once

#include <atomic>

namespace tamis {

// A local `static` does the same with guards that are part of the C++ runtime. This needs none, so that programs in C
// and Fortran link the static library of the filter without one. Has to be `constinit static`.
//
// No thread waits for another: several may make the value at once, and the first one keeps it. A process that is forked
// while a thread of its parent makes it would otherwise wait forever.
template <class T>
class Once {
    enum State { absent, in_work, present };
    std::atomic<State> state{absent};
    T value{};

public:
    template <class Make>
    T get(const Make& make) {
        if (state.load(std::memory_order_acquire) == present) return value;
        const T made = make();
        State seen = absent;
        if (state.compare_exchange_strong(seen, in_work, std::memory_order_acquire)) {
            value = made;
            state.store(present, std::memory_order_release);
        }
        return made;
    }
};

}  // namespace tamis
