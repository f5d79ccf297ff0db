// Threads that live as long as one call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace tamis {

// Call `work` with 0 in this thread and with 1 … `count` − 1 in others, and wait for all. Where the system has no more
// threads, there are fewer: `work` shares out what is to be done among those that come. It throws nothing.
template <class Work>
void in_threads(std::size_t count, const Work& work) {
    std::vector<std::thread> others;  // libc++ has had std::jthread since version 20 only
    others.reserve(count - 1);
    try {
        for (std::size_t number = 1; number < count; ++number) others.emplace_back([&work, number] { work(number); });
    } catch (const std::system_error&) {
    }
    work(std::size_t{0});
    for (std::thread& other : others) other.join();
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
