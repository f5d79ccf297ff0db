// Threads that live as long as one call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "tamis/system/thread.hpp"

namespace tamis {

// Call `work` with 0 in this thread and with 1 … `count` − 1 in others, and wait for all. Where the system has no more
// threads, there are fewer: `work` shares out what is to be done among those that come. It throws nothing.
template <class Work>
void in_threads(std::size_t count, const Work& work) {
    struct Other {
        const Work& work;
        std::size_t number;
        system::Thread thread;
        void operator()() { work(number); }
    };
    std::vector<Other> others;
    others.reserve(count - 1);  // they stay where they are
    for (std::size_t number = 1; number < count; ++number) {
        others.push_back({work, number, {}});
        if (!others.back().thread.start(others.back())) {
            others.pop_back();
            break;
        }
    }
    work(std::size_t{0});
    for (Other& other : others) other.thread.join();
}

// Call `work` with each of `first` … `end` − 1, in up to `threads` threads, until one call returns false.
template <class Work>
void share_out(std::size_t threads, std::size_t first, std::size_t end, const Work& work) {
    if (first >= end) return;
    std::atomic<std::size_t> next = first;
    in_threads(std::min(threads, end - first), [&](std::size_t) {
        for (std::size_t number; (number = next.fetch_add(1, std::memory_order_relaxed)) < end;)
            if (!work(number)) next = end;
    });
}

}  // namespace tamis
