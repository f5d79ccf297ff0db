#include "filter.hpp"
#include "settings.hpp"

namespace tamis::plugin {

Outcome decode(const Stored& stored, const std::uint8_t* in, std::size_t in_nbytes) {
    const Header& header = stored.header;
    const std::size_t nbytes = chunk_nbytes(header);
    // Each block takes minbits at least, so a few bytes cannot ask for much memory.
    const std::size_t possible = in_nbytes * 8 / std::max(header.params.minbits, 1u);
    if (nbytes == 0 || header.layout.blocks() > possible)
        return failure(describe({Code::truncated, possible}, header.type));
    Outcome outcome{allocate(nbytes), nbytes, nbytes, {}};
    if (!outcome.buffer) return failure(Message::format("zfp: no memory for %zu bytes", nbytes));
    std::size_t end = 0;
    const Status status =
        kernel().decode(header.type, outcome.buffer.get(), header.layout, header.params, {in, in_nbytes}, 0, end);
    if (!status) return failure(describe(status, header.type));
    if (stored.swapped) swap_values(outcome.buffer.get(), nbytes, zfp::item_nbytes(header.type));
    return outcome;
}

}  // namespace tamis::plugin
