#include "hdf5/filter.hpp"

#include "hdf5/non_finite.hpp"
#include "hdf5/settings.hpp"
#include "tamis/zfp/proof.hpp"

namespace tamis::hdf5 {

namespace {

Buffer allocate(std::size_t nbytes) { return Buffer(static_cast<std::uint8_t*>(std::malloc(nbytes > 0 ? nbytes : 1))); }

void swap_values(std::uint8_t* bytes, std::size_t nbytes, std::size_t item_nbytes) {
    const auto swap = [&](auto zero) {
        for (std::size_t at = 0; at + sizeof zero <= nbytes; at += sizeof zero) {
            std::memcpy(&zero, bytes + at, sizeof zero);
            zero = zfp::byteswap(zero);
            std::memcpy(bytes + at, &zero, sizeof zero);
        }
    };
    if (item_nbytes == 4)
        swap(std::uint32_t{});
    else
        swap(std::uint64_t{});
}

bool is_proven(const Stored& stored) {
    const auto& [type, layout, params, nbits] = stored.header;
    return stored.proven && zfp::promises_accuracy(params, type, layout.rank) && proves_chunks();
}

}  // namespace

Outcome encode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes) {
    const Header& header = stored.header;
    const std::size_t expected = chunk_nbytes(header);
    if (expected != in_nbytes)
        return failure(
            Message::format("zfp: stored parameters describe chunks of %zu bytes, got %zu", expected, in_nbytes));
    Buffer native;
    if (stored.swapped) {
        native = allocate(in_nbytes);
        if (!native) return failure(Message::format("zfp: no memory for %zu bytes", in_nbytes));
        std::memcpy(native.get(), in, in_nbytes);
        swap_values(native.get(), in_nbytes, zfp::item_nbytes(header.type));
        in = native.get();
    }
    const std::size_t capacity = zfp::encode_capacity(header.type, header.layout, header.params, 0);
    Outcome outcome{allocate(capacity), 0, capacity, false, {}};
    if (capacity == 0 || !outcome.buffer) return failure(Message::format("zfp: no memory for %zu bytes", capacity));
    std::size_t end = 0;
    Status status = kernel().encode(header.type, in, header.layout, header.params, outcome.buffer.get(), 0, end);
    const bool has_rest = may_be_unfiltered(stored),
               as_reference = status.code == Code::non_finite && encodes_non_finite();
    const bool proven = is_proven(stored) && !as_reference;
    if (as_reference)
        status = encode_non_finite(header.type, in, header.layout, header.params, outcome.buffer.get(), end);
    if (!status) return has_rest ? unfiltered() : failure(describe(status, header.type));
    outcome.nbytes = (end + 7) / 8;
    if (proven) {
        const zfp::Verdict verdict = zfp::prove(kernel(), header.type, in, header.layout, header.params, stored.fill,
                                                status.exponent, {outcome.buffer.get(), outcome.nbytes});
        if (!verdict.status) return has_rest ? unfiltered() : failure(describe(verdict, header));
    }
    // HDF5 (up to 2.2) keeps the old mask of a chunk that is written again with the same size, even if only one of both
    // went through zfp. So no stream is as long as the values. In bounds: guard_nbits follow.
    if ((proven || has_rest) && outcome.nbytes == in_nbytes) outcome.buffer.get()[outcome.nbytes++] = 0;
    // H5Ocopy copies chunks that HDF5 keeps decoded into the previous chunk's buffer, unchecked (HDF5 up to 2.0).
    const std::size_t enough = std::max(outcome.nbytes, in_nbytes);
    if (void* smaller = std::realloc(outcome.buffer.get(), enough)) {
        (void)outcome.buffer.release();
        outcome.buffer.reset(static_cast<std::uint8_t*>(smaller));
        outcome.allocated = enough;
    }
    return outcome;
}

Outcome decode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes) {
    const Header& header = stored.header;
    const std::size_t nbytes = chunk_nbytes(header);
    if (in_nbytes == nbytes && nbytes != 0 && may_be_unfiltered(stored)) return unfiltered();
    // Each block takes minbits at least, so a few bytes cannot ask for much memory.
    const std::size_t possible = in_nbytes * 8 / std::max(header.params.minbits, 1u);
    if (nbytes == 0 || header.layout.blocks() > possible)
        return failure(describe({Code::truncated, possible}, header.type));
    Outcome outcome{allocate(nbytes), nbytes, nbytes, false, {}};
    if (!outcome.buffer) return failure(Message::format("zfp: no memory for %zu bytes", nbytes));
    std::size_t end = 0;
    const Status status =
        kernel().decode(header.type, outcome.buffer.get(), header.layout, header.params, {in, in_nbytes}, 0, end);
    if (!status) return failure(describe(status, header.type));
    if (stored.swapped) swap_values(outcome.buffer.get(), nbytes, zfp::item_nbytes(header.type));
    return outcome;
}

}  // namespace tamis::hdf5
