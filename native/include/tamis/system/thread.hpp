// A thread of the system.
//
// The code of std::thread is in the C++ runtime, under names that libstdc++ and libc++ do not share: a static library
// that calls it could only be linked by a compiler with the runtime that it was built with.
#pragma once

#ifdef _WIN32
#include <process.h>

#include "tamis/system/windows.hpp"
#else
#include <pthread.h>
#endif

namespace tamis::system {

// Runs `work()`, which throws nothing and lives until `join`.
class Thread {
public:
    // False where the system has no more threads.
    template <class Work>
    bool start(Work& work) {
#ifdef _WIN32
        const auto run = [](void* given) -> unsigned { return (*static_cast<Work*>(given))(), 0U; };
        handle_ = reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, run, &work, 0, nullptr));
        return handle_ != nullptr;
#else
        const auto run = [](void* given) -> void* { return (*static_cast<Work*>(given))(), nullptr; };
        return pthread_create(&thread_, nullptr, run, &work) == 0;
#endif
    }

    // Wait for the end of what was started.
    void join() {
#ifdef _WIN32
        WaitForSingleObject(handle_, INFINITE);
        CloseHandle(handle_);
#else
        pthread_join(thread_, nullptr);
#endif
    }

private:
#ifdef _WIN32
    HANDLE handle_ = nullptr;
#else
    pthread_t thread_{};
#endif
};

}  // namespace tamis::system
