// libdeflate, if a library of this process has it: bound by name, since there is none to link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <type_traits>

#include "tamis/system/shared_library.hpp"

namespace tamis::chunks {

// Its functions, as libdeflate.h declares them since version 1.0.
struct Libdeflate {
    void* (*make_decompressor)() = nullptr;
    void (*free_decompressor)(void*) = nullptr;
    int (*decompress)(void*, const void* in, std::size_t in_nbytes, void* out, std::size_t room,
                      std::size_t* nbytes) = nullptr;
    void* (*make_compressor)(int level) = nullptr;
    void (*free_compressor)(void*) = nullptr;
    std::size_t (*compress)(void*, const void* in, std::size_t in_nbytes, void* out, std::size_t room) = nullptr;
    std::uint32_t (*crc32)(std::uint32_t crc, const void* in, std::size_t nbytes) = nullptr;

    explicit operator bool() const {
        return make_decompressor && free_decompressor && decompress && make_compressor && free_compressor && compress &&
               crc32;
    }

    // Of the library at a path, which is loaded already and stays so, and of those that it needs.
    static Libdeflate of(const char* path) {
        Libdeflate bound;
        const system::SharedLibrary library = system::loaded_library(path);
        if (library == nullptr) return bound;
        const auto bind = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(system::symbol(library, name));
        };
        bind(bound.make_decompressor, "libdeflate_alloc_decompressor");
        bind(bound.free_decompressor, "libdeflate_free_decompressor");
        bind(bound.decompress, "libdeflate_zlib_decompress");
        bind(bound.make_compressor, "libdeflate_alloc_compressor");
        bind(bound.free_compressor, "libdeflate_free_compressor");
        bind(bound.compress, "libdeflate_zlib_compress");
        bind(bound.crc32, "libdeflate_crc32");
        return bound;  // the handle is kept: what it leads to must stay
    }
};

// One for each thread.
class Inflater {
public:
    explicit Inflater(const Libdeflate& library) : library_(library), state_(nullptr, library.free_decompressor) {}

    // Decompress a zlib stream to at most as many bytes as there is room; false where it is damaged, or holds more.
    bool operator()(std::span<const std::uint8_t> in, std::uint8_t* out, std::size_t room, std::size_t& nbytes) {
        if (!state_) state_.reset(library_.make_decompressor());
        return state_ && library_.decompress(state_.get(), in.data(), in.size(), out, room, &nbytes) == 0;
    }

private:
    const Libdeflate& library_;
    std::unique_ptr<void, void (*)(void*)> state_;
};

// One for each thread and level.
class Deflater {
public:
    Deflater(const Libdeflate& library, int level)
        : library_(&library), state_(library.make_compressor(level), library.free_compressor) {}

    // Compress to a zlib stream; returns its size, 0 where there is no room or memory.
    std::size_t operator()(std::span<const std::uint8_t> in, std::uint8_t* out, std::size_t room) {
        return state_ ? library_->compress(state_.get(), in.data(), in.size(), out, room) : 0;
    }

private:
    const Libdeflate* library_;
    std::unique_ptr<void, void (*)(void*)> state_;
};

// The one of this thread: to make one takes as long as to compress several KiB.
inline Deflater& deflater_of(const Libdeflate& library, int level) {
    thread_local std::map<int, Deflater> deflaters;
    return deflaters.try_emplace(level, library, level).first->second;
}

}  // namespace tamis::chunks
