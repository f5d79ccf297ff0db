// The codec for C: checks of what a caller gives, and failures as codes and words.

#include <cstdint>
#include <cstdio>
#include <new>

#include "tamis.h"
#include "tamis/hdf5/cd_values.hpp"
#include "tamis/zfp/codec.hpp"
#include "tamis/zfp/parallel_decode.hpp"
#include "tamis/zfp/parallel_encode.hpp"

namespace tamis::capi {

namespace {

using zfp::Code;
using zfp::Layout;
using zfp::Params;
using zfp::Status;
using zfp::Type;

thread_local char last_error[200] = "";

template <class... Arguments>
int fail(tamis_code code, const char* pattern, Arguments... arguments) {
    std::snprintf(last_error, sizeof last_error, pattern, arguments...);
    return code;
}

int fail(const Status& status) {
    const auto where = static_cast<unsigned long long>(status.where);
    switch (status.code) {
        case Code::ok:
            return TAMIS_OK;
        case Code::non_finite:
            return fail(TAMIS_NON_FINITE,
                        "NaN or infinity at value %llu: lossy modes take finite values only; use reversible mode",
                        where);
        case Code::integer_range:
            return fail(TAMIS_OUT_OF_RANGE,
                        "integer out of range at value %llu: lossy modes take magnitudes below 2^30 (2^62 of 8 bytes); "
                        "use reversible mode",
                        where);
        case Code::changed:
            return fail(TAMIS_CHANGED, "values were changed while they were encoded");
        case Code::truncated:
            return fail(TAMIS_TRUNCATED, "stream is truncated or damaged: it ends inside block %llu", where);
        case Code::not_a_header:
            return fail(TAMIS_BAD_HEADER, "expected a ZFP header, got other bytes");
        case Code::codec_version:
            return fail(TAMIS_OTHER_CODEC, "expected ZFP codec %u, got codec %llu", zfp::codec_version, where);
        case Code::bad_rate:
            return fail(TAMIS_BAD_PARAMETER, "expected a finite rate above 0 that gives 1 to %u bits per block",
                        zfp::header_max_bits);
        case Code::bad_precision:
            return fail(TAMIS_BAD_PARAMETER, "expected a precision of 1 to %u bit planes", zfp::max_prec);
        case Code::bad_accuracy:
            return fail(TAMIS_BAD_PARAMETER, "expected a finite accuracy of 0 or more");
        case Code::bad_expert:
            return fail(TAMIS_BAD_PARAMETER,
                        "expected minbits <= maxbits, minbits <= %u, maxbits >= 1 and maxprec 1 to %u",
                        zfp::header_max_bits, zfp::max_prec);
        case Code::maxbits_small:
            return fail(TAMIS_BAD_PARAMETER, "expected maxbits of at least %llu for blocks of this type", where);
        case Code::extent_large:
            return fail(TAMIS_TOO_LONG,
                        "an axis is too long for the ZFP header (number %llu from the fastest): use at most 2^48, "
                        "2^24, 65536 or 4096 for 1, 2, 3 or 4 axes",
                        where);
        default:
            return fail(TAMIS_BAD_PARAMETER, "these parameters are refused");
    }
}

int no_memory(std::size_t nbytes) { return fail(TAMIS_NO_MEMORY, "no memory for %zu bytes", nbytes); }

bool is_type(int type) { return type >= TAMIS_INT32 && type <= TAMIS_DOUBLE; }

int checked_type(int type, unsigned rank) {
    if (!is_type(type)) return fail(TAMIS_BAD_ARGUMENT, "expected a type of 1 to 4, got %d", type);
    if (rank < 1 || rank > zfp::max_rank) return fail(TAMIS_BAD_ARGUMENT, "expected 1 to 4 axes, got %u", rank);
    return TAMIS_OK;
}

struct Checked {
    Type type;
    Layout layout;
    Params params;
};

int check(const tamis_array* array, const tamis_zfp_params* params, Checked& checked) {
    if (array == nullptr || params == nullptr) return fail(TAMIS_BAD_ARGUMENT, "expected an array and parameters");
    if (const int code = checked_type(array->type, array->rank); code != TAMIS_OK) return code;
    checked.type = static_cast<Type>(array->type);
    std::array<std::size_t, zfp::max_rank> extent{1, 1, 1, 1};
    // All blocks of 4^rank values fit into memory, so that no count below is too large for its type.
    std::size_t left = std::numeric_limits<std::ptrdiff_t>::max() / 256 / zfp::item_nbytes(checked.type);
    for (unsigned axis = 0; axis < array->rank; ++axis) {
        const std::size_t length = array->shape[axis];
        if (length == 0) return fail(TAMIS_BAD_ARGUMENT, "expected axes of 1 or more, got 0 at axis %u", axis);
        if (length > left) return fail(TAMIS_TOO_LONG, "the array is too long for memory");
        left /= length;
        extent[array->rank - 1 - axis] = length;
    }
    checked.layout = Layout::contiguous(array->rank, extent);
    checked.params = {params->minbits, params->maxbits, params->maxprec, params->minexp};
    return fail(zfp::check(checked.params, checked.type));
}

int give(const Status& status, const Params& from, tamis_zfp_params* params) {
    if (params == nullptr) return fail(TAMIS_BAD_ARGUMENT, "expected memory for parameters, got a null pointer");
    if (!status) return fail(status);
    *params = {from.minbits, from.maxbits, from.maxprec, from.minexp};
    return TAMIS_OK;
}

int give(const Status& status, const zfp::Header& header, tamis_array* array, tamis_zfp_params* params) {
    if (array == nullptr) return fail(TAMIS_BAD_ARGUMENT, "expected memory for an array, got a null pointer");
    if (!status) return fail(status);
    *array = {static_cast<tamis_type>(header.type), header.layout.rank, {}};
    for (unsigned axis = 0; axis < array->rank; ++axis)
        array->shape[axis] = header.layout.extent[array->rank - 1 - axis];
    return give(zfp::check(header.params, header.type), header.params, params);
}

const zfp::Kernel& kernel() { return *zfp::chosen_kernel().kernel; }

// The header of a stream, or nothing.
struct Start {
    std::uint8_t bytes[zfp::header_max_nbytes] = {};
    std::size_t nbits = 0;
};

int no_room(std::size_t needed, std::size_t capacity) {
    return fail(TAMIS_NO_ROOM, "expected memory for %zu bytes, got %zu", needed, capacity);
}

// Throws std::bad_alloc. False where a value is refused.
bool encode_in_threads(const Checked& c, const void* data, const Start& start, std::uint8_t* out, std::size_t capacity,
                       std::size_t& nbytes, unsigned threads) {
    zfp::EncodedRuns runs(c.layout, {threads});
    if (!runs.encode(kernel(), c.type, data, c.params, start.bytes, start.nbits)) return false;
    nbytes = runs.nbytes();
    if (nbytes <= capacity) runs.join(out);
    return true;
}

int encode_here(const Checked& c, const void* data, const Start& start, std::uint8_t* out, std::size_t capacity,
                std::size_t& nbytes) {
    const std::size_t longest = zfp::encode_capacity(c.type, c.layout, c.params, start.nbits);
    const zfp::RawMemory scratch = capacity >= longest ? zfp::RawMemory() : zfp::raw_memory(longest);
    if (longest == 0 || (capacity < longest && !scratch)) return no_memory(longest);
    std::uint8_t* to = scratch ? scratch.get() : out;
    std::memcpy(to, start.bytes, (start.nbits + 7) / 8);
    std::size_t end = 0;
    if (const Status status = kernel().encode(c.type, data, c.layout, c.params, to, start.nbits, end); !status)
        return fail(status);
    nbytes = (end + 7) / 8;
    if (scratch && nbytes <= capacity) std::memcpy(out, scratch.get(), nbytes);
    return TAMIS_OK;
}

int encode(const Checked& c, const void* data, const Start& start, std::uint8_t* out, std::size_t capacity,
           std::size_t& nbytes, unsigned threads) {
    const bool done = threads > 1 && zfp::worth_sharing(c.layout) &&
                      encode_in_threads(c, data, start, out, capacity, nbytes, threads);
    // One thread says which value is refused.
    const int code = done ? TAMIS_OK : encode_here(c, data, start, out, capacity, nbytes);
    return code != TAMIS_OK || nbytes <= capacity ? code : no_room(nbytes, capacity);
}

}  // namespace

}  // namespace tamis::capi

#pragma GCC visibility push(default)

extern "C" {

int tamis_zfp_set_rate(tamis_zfp_params* params, double rate, tamis_type type, unsigned rank) {
    using namespace tamis::capi;
    Params set;
    if (const int code = checked_type(type, rank); code != TAMIS_OK) return code;
    return give(tamis::zfp::set_rate(set, rate, static_cast<Type>(type), rank), set, params);
}

int tamis_zfp_set_precision(tamis_zfp_params* params, unsigned precision) {
    tamis::zfp::Params set;
    return tamis::capi::give(tamis::zfp::set_precision(set, precision), set, params);
}

int tamis_zfp_set_accuracy(tamis_zfp_params* params, double accuracy) {
    tamis::zfp::Params set;
    return tamis::capi::give(tamis::zfp::set_accuracy(set, accuracy), set, params);
}

int tamis_zfp_set_expert(tamis_zfp_params* params, unsigned minbits, unsigned maxbits, unsigned maxprec, int minexp) {
    tamis::zfp::Params set;
    return tamis::capi::give(tamis::zfp::set_expert(set, minbits, maxbits, maxprec, minexp), set, params);
}

int tamis_zfp_set_reversible(tamis_zfp_params* params) {
    return tamis::capi::give({}, tamis::zfp::reversible_params(), params);
}

size_t tamis_zfp_max_nbytes(const tamis_array* array, const tamis_zfp_params* params) {
    tamis::capi::Checked c;
    if (tamis::capi::check(array, params, c) != TAMIS_OK) return 0;
    return tamis::zfp::encode_capacity(c.type, c.layout, c.params, tamis::zfp::header_long_nbits);
}

int tamis_zfp_encode(const tamis_array* array, const tamis_zfp_params* params, int with_header, const void* data,
                     void* out, size_t capacity, size_t* nbytes, unsigned threads) {
    using namespace tamis::capi;
    Checked c;
    if (const int code = check(array, params, c); code != TAMIS_OK) return code;
    if (data == nullptr || nbytes == nullptr || (out == nullptr && capacity > 0))
        return fail(TAMIS_BAD_ARGUMENT, "expected values, memory for the stream and for its length");
    Start start;
    if (with_header != 0) {
        const Status status = tamis::zfp::pack_header(c.type, c.layout, c.params, start.bytes, start.nbits);
        if (!status) return fail(status);
    }
    try {
        return encode(c, data, start, static_cast<std::uint8_t*>(out), capacity, *nbytes, threads);
    } catch (const std::bad_alloc&) {
        return fail(TAMIS_NO_MEMORY, "no memory for the stream");
    }
}

int tamis_zfp_decode(const tamis_array* array, const tamis_zfp_params* params, const void* in, size_t nbytes,
                     size_t first_bit, void* data, unsigned threads) {
    using namespace tamis::capi;
    Checked c;
    if (const int code = check(array, params, c); code != TAMIS_OK) return code;
    if (data == nullptr || (in == nullptr && nbytes > 0))
        return fail(TAMIS_BAD_ARGUMENT, "expected a stream and memory for its values");
    if (nbytes > std::numeric_limits<std::size_t>::max() / 16)
        return fail(TAMIS_BAD_ARGUMENT, "expected a stream of fewer bytes than memory has, got %zu", nbytes);
    const auto* bytes = static_cast<const std::uint8_t*>(in);
    const tamis::zfp::Source source{kernel(), c.type, c.layout.rank, c.params, {bytes, nbytes}};
    std::size_t end = 0;
    if (first_bit > 8 * nbytes) return fail({Code::truncated, 0});
    try {
        return fail(threads > 1 && tamis::zfp::worth_sharing(c.layout)
                        ? tamis::zfp::ParallelDecoder(source, data, c.layout, first_bit, {threads}).decode(end)
                        : kernel().decode(c.type, data, c.layout, c.params, source.in, first_bit, end));
    } catch (const std::bad_alloc&) {
        return fail(TAMIS_NO_MEMORY, "no memory for threads");
    }
}

int tamis_zfp_read_header(const void* in, size_t nbytes, tamis_array* array, tamis_zfp_params* params,
                          size_t* end_bit) {
    using namespace tamis::capi;
    if (in == nullptr || end_bit == nullptr)
        return fail(TAMIS_BAD_ARGUMENT, "expected a header and memory for what it says");
    tamis::zfp::Header header;
    const Status status = tamis::zfp::unpack_header({static_cast<const std::uint8_t*>(in), nbytes}, header);
    *end_bit = header.nbits;
    return give(status, header, array, params);
}

int tamis_zfp_read_cd_values(const unsigned* cd_values, size_t count, tamis_array* chunk, tamis_zfp_params* params) {
    using namespace tamis::capi;
    if (cd_values == nullptr) return fail(TAMIS_BAD_ARGUMENT, "expected cd_values, got a null pointer");
    tamis::hdf5::Stored stored;
    const Status status = tamis::hdf5::parse_stored({cd_values, count}, stored);
    if (status && stored.swapped)
        return fail(TAMIS_BYTE_ORDER, "the chunks' values are of the other byte order, which the filter swaps");
    return give(status, stored.header, chunk, params);
}

const char* tamis_error_text(int code) {
    switch (code) {
        case TAMIS_OK:
            return "done";
        case TAMIS_BAD_ARGUMENT:
            return "an argument is null, or no array's type or shape";
        case TAMIS_BAD_PARAMETER:
            return "parameters that the codec does not have";
        case TAMIS_BAD_HEADER:
            return "no ZFP header";
        case TAMIS_OTHER_CODEC:
            return "a stream of another version of the codec";
        case TAMIS_BYTE_ORDER:
            return "values of the other byte order";
        case TAMIS_TOO_LONG:
            return "an axis that is too long";
        case TAMIS_NON_FINITE:
            return "NaN or infinity in a lossy mode";
        case TAMIS_OUT_OF_RANGE:
            return "an integer out of range in a lossy mode";
        case TAMIS_CHANGED:
            return "values were changed while they were encoded";
        case TAMIS_TRUNCATED:
            return "a stream that is truncated or damaged";
        case TAMIS_NO_ROOM:
            return "memory for the stream is too short";
        case TAMIS_NO_MEMORY:
            return "no memory";
        default:
            return "no code of tamis";
    }
}

const char* tamis_last_error(void) { return tamis::capi::last_error; }

const char* tamis_version(void) { return TAMIS_VERSION; }
}

#pragma GCC visibility pop
