// How the native tests fail: one message that names the promise, the place in the test and the case at hand.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>

// The sanitizers' runtime calls back before it ends the program; absent without them.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace tamis::tests {

// What is being done, so that a failure can be done again: `tamis_fuzz 1 <seed> <number>` for a mutation.
struct Place {
    const char* what = "start";
    std::uint64_t number = 0;
};

inline thread_local Place place;

// Where failures are printed, also if a test silences stderr.
inline std::FILE* const terminal = stderr;

inline void print_place() {
    std::fprintf(terminal, "while at: %s, number %llu\n", place.what, static_cast<unsigned long long>(place.number));
}

inline void name_place_at_death() {
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&print_place);
}

inline void require(bool kept, const char* promise, std::source_location at = std::source_location::current()) {
    if (kept) return;
    std::fflush(stdout);
    std::fprintf(terminal, "%s:%u: expected: %s\n", at.file_name(), at.line(), promise);
    print_place();
    std::_Exit(1);
}

}  // namespace tamis::tests
