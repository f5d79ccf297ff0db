// Files: their size, and ranges of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef _WIN32
#include <io.h>

#include <algorithm>

#include "tamis/system/windows.hpp"
#else
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace tamis::system {

// Reads ranges of a file that somebody else has open, whose position stays where it is: HDF5 counts on it where it has
// no pread. Each thread may have its own.
class RangeReader {
public:
#ifdef _WIN32
    // A read at an offset moves the position of its handle, so this one is another handle of the file.
    explicit RangeReader(int file)
        : handle_(ReOpenFile(reinterpret_cast<HANDLE>(_get_osfhandle(file)), GENERIC_READ,
                             FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, 0)) {}
    ~RangeReader() {
        if (handle_ != INVALID_HANDLE_VALUE) CloseHandle(handle_);
    }

    // 0 where that cannot be told.
    std::size_t file_nbytes() const {
        LARGE_INTEGER size{};
        return handle_ != INVALID_HANDLE_VALUE && GetFileSizeEx(handle_, &size) != 0 && size.QuadPart > 0
                   ? static_cast<std::size_t>(size.QuadPart)
                   : 0;
    }

    // Read a range that the file has; false where it ends before, or cannot be read.
    bool read(std::int64_t offset, std::uint8_t* out, std::size_t nbytes) const {
        while (nbytes != 0) {
            OVERLAPPED place{};
            place.Offset = static_cast<DWORD>(offset);
            place.OffsetHigh = static_cast<DWORD>(offset >> 32);
            DWORD count = 0;
            const auto most = static_cast<DWORD>(std::min<std::size_t>(nbytes, 1 << 30));
            if (ReadFile(handle_, out, most, &count, &place) == 0 || count == 0) return false;
            out += count;
            offset += count;
            nbytes -= count;
        }
        return true;
    }
#else
    explicit RangeReader(int file) : file_(file) {}

    // 0 where that cannot be told.
    std::size_t file_nbytes() const {
        struct stat status;
        return fstat(file_, &status) == 0 && status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
    }

    // Read a range that the file has; false where it ends before, or cannot be read.
    bool read(std::int64_t offset, std::uint8_t* out, std::size_t nbytes) const {
        while (nbytes != 0) {
            const ssize_t count = pread(file_, out, nbytes, static_cast<off_t>(offset));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return false;
            out += count;
            offset += count;
            nbytes -= static_cast<std::size_t>(count);
        }
        return true;
    }
#endif
    RangeReader(const RangeReader&) = delete;
    RangeReader& operator=(const RangeReader&) = delete;

private:
#ifdef _WIN32
    HANDLE handle_;
#else
    int file_;
#endif
};

// Of the file at a path, in UTF-8 on Windows; -1 where that cannot be told.
inline std::int64_t nbytes_of(const char* path) {
#ifdef _WIN32
    constexpr int room = MAX_PATH * 4;
    wchar_t wide[room];
    WIN32_FILE_ATTRIBUTE_DATA facts{};
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, room) == 0 ||
        GetFileAttributesExW(wide, GetFileExInfoStandard, &facts) == 0)
        return -1;
    return static_cast<std::int64_t>(facts.nFileSizeHigh) << 32 | facts.nFileSizeLow;
#else
    struct stat facts{};
    return stat(path, &facts) == 0 ? static_cast<std::int64_t>(facts.st_size) : -1;
#endif
}

}  // namespace tamis::system
