// One array encoded in threads, to the bytes that one thread gives.
//
// Each thread encodes one run of blocks after the other into memory of its own, which stays in its cache, and keeps a
// copy. When all lengths are known, the copies are shifted to their bits of the stream, again in threads.
#pragma once

#include <cstring>
#include <new>
#include <vector>

#include "bits.hpp"
#include "codec.hpp"
#include "memory.hpp"
#include "runs.hpp"
#include "tamis/threads.hpp"

namespace tamis::zfp {

// A stream in parts that are not joined yet.
class EncodedRuns {
public:
    EncodedRuns(const Layout& layout, const Sharing& sharing)
        : runs_(layout, sharing.run_nvalues), parts_(runs_.count()), threads_(sharing.threads) {}

    // False where a run is refused, which is for one thread to say then: it finds the first value of the whole array.
    // The stream begins with the first `start` bits of `header`. Throws std::bad_alloc.
    bool encode(const Kernel& kernel, Type type, const void* data, const Params& params, const std::uint8_t* header,
                std::size_t start) {
        const std::size_t longest = encode_capacity(type, runs_[0].layout, params, start);
        std::atomic<std::size_t> next = 0;
        std::atomic<bool> refused = false, no_memory = false;
        in_threads(std::min(threads_, parts_.size()), [&](std::size_t) {
            const RawMemory scratch = longest == 0 ? RawMemory() : raw_memory(longest);
            if (!scratch) no_memory = true;
            for (std::size_t number; !refused && !no_memory && (number = next++) < parts_.size();) {
                const Run run = runs_[number];
                const std::size_t begin = number == 0 ? start : 0;
                std::memcpy(scratch.get(), header, (begin + 7) / 8);
                const auto* from = static_cast<const std::uint8_t*>(data) +
                                   run.offset * static_cast<std::ptrdiff_t>(item_nbytes(type));
                std::size_t end = 0;
                if (!kernel.encode(type, from, run.layout, params, scratch.get(), begin, end))
                    refused = true;
                else if (!parts_[number].keep(scratch.get(), end))
                    no_memory = true;
            }
        });
        if (no_memory) throw std::bad_alloc();
        if (refused) return false;
        for (std::size_t number = 0; number < parts_.size(); ++number) {
            parts_[number].position = nbits_;
            nbits_ += parts_[number].nbits;
        }
        return true;
    }

    std::size_t nbytes() const { return (nbits_ + 7) / 8; }

    // Write all nbytes() of the stream.
    void join(std::uint8_t* out) {
        // A part ends inside a byte: the bits that complete it are those of the next one, and are put behind it.
        for (std::size_t number = parts_.size() - 1; number > 0; --number) parts_[number - 1].add(parts_[number]);
        share_out(threads_, 0, parts_.size(), [&](std::size_t number) {
            parts_[number].copy_to(out);
            return true;
        });
    }

private:
    struct Part {
        // Bytes that may be read behind the bits, or written.
        static constexpr std::size_t guard_nbytes = 16;

        RawMemory bytes;
        std::size_t nbits = 0, position = 0;  // of the stream

        // False where there is no memory.
        bool keep(const std::uint8_t* from, std::size_t count) {
            nbits = count;
            const std::size_t nbytes = (nbits + 7) / 8;
            bytes = raw_memory(nbytes + guard_nbytes);
            if (!bytes) return false;
            std::memcpy(bytes.get(), from, nbytes);
            std::memset(bytes.get() + nbytes, 0, guard_nbytes);
            return true;
        }

        void add(const Part& next) {
            BitWriter writer(bytes.get(), nbits);
            writer.put(*next.bytes, 8);
            writer.flush();
        }

        // The bytes of the stream whose first bit is one of these.
        void copy_to(std::uint8_t* out) const {
            const std::size_t first = (position + 7) / 8, end = (position + nbits + 7) / 8;
            std::size_t bit = 8 * first - position, byte = first;
            if (bit == 0) {
                std::memcpy(out + first, bytes.get(), end - first);
                return;
            }
            const BitReader reader{bytes.get(), 0};
            for (; byte + 8 <= end; byte += 8, bit += 64) store_le64(out + byte, reader.peek_wide(bit));
            for (; byte < end; ++byte, bit += 8) out[byte] = static_cast<std::uint8_t>(reader.peek_at(bit));
        }
    };

    Runs runs_;
    std::vector<Part> parts_;
    std::size_t threads_;
    std::size_t nbits_ = 0;
};

}  // namespace tamis::zfp
