// A file without a name, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#else
#include <cstdio>
#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif
#endif

namespace tamis::system {

class ScratchFile {
public:
#ifdef __linux__  // in memory: fuzzers write many
    ScratchFile() : number_(memfd_create("scratch", MFD_CLOEXEC)) {}
    ~ScratchFile() { ::close(number_); }

    // Replace all that it holds; false where that fails.
    bool hold(std::span<const std::uint8_t> bytes) const {
        return ftruncate(number_, 0) == 0 &&
               pwrite(number_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    }

    // Its descriptor; negative where there is none.
    int number() const { return number_; }
#else
    ScratchFile() : file_(std::tmpfile()) {}
    ~ScratchFile() {
        if (file_ != nullptr) std::fclose(file_);
    }

    // Replace all that it holds; false where that fails.
    bool hold(std::span<const std::uint8_t> bytes) const {
        if (file_ == nullptr || std::fseek(file_, 0, SEEK_SET) != 0) return false;
#ifdef _WIN32
        if (_chsize_s(number(), 0) != 0) return false;
#else
        if (ftruncate(number(), 0) != 0) return false;
#endif
        return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size() && std::fflush(file_) == 0;
    }

    // Its descriptor; negative where there is none.
    int number() const {
        if (file_ == nullptr) return -1;
#ifdef _WIN32
        return _fileno(file_);
#else
        return fileno(file_);
#endif
    }
#endif
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;

private:
#ifdef __linux__
    int number_;
#else
    std::FILE* file_;
#endif
};

}  // namespace tamis::system
