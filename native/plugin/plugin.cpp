// HDF5 filter 32013: the three callbacks, and the two functions by which HDF5 finds them.
//
// Whatever is wrong with type, chunk, pipeline or parameters fails in H5Dcreate, for optional filters too: HDF5 would
// store every chunk unfiltered without a word. Only the data themselves can fail later; HDF5 then leaves the chunk as
// it is (optional) or reports our message (required).

#include <cstdlib>
#include <limits>
#include <memory>

#include "hdf5.hpp"
#include "messages.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::plugin {

namespace {

// HDF5 has no place for a warning, so that a kernel that cannot be had is told to the terminal, once.
const zfp::Kernel& kernel() {
    static const zfp::Kernel& kernel = []() -> const zfp::Kernel& {
        const zfp::Choice& choice = zfp::chosen_kernel();
        if (!choice.as_asked)
            std::fprintf(stderr, "tamis: expected %s to name a kernel of this machine, got '%s'; using %s\n",
                         zfp::kernel_variable, std::getenv(zfp::kernel_variable), choice.kernel->name);
        return *choice.kernel;
    }();
    return kernel;
}

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::uint8_t, Free>;

Buffer allocate(std::size_t nbytes) { return Buffer(static_cast<std::uint8_t*>(std::malloc(nbytes > 0 ? nbytes : 1))); }

// What H5Dcreate tells about a dataset, as far as ZFP can take it.
struct Chunk {
    Type type = Type::float64;
    bool is_unsigned = false;
    Layout layout;
};

struct NamedType {
    const char* native;
    const char* foreign;
    std::size_t nbytes;
    Type type;
    bool is_unsigned;
};

constexpr bool little = std::endian::native == std::endian::little;

template <std::size_t n>
constexpr NamedType named(const char (&le)[n], const char (&be)[n], std::size_t nbytes, Type type, bool is_unsigned) {
    return {little ? le : be, little ? be : le, nbytes, type, is_unsigned};
}

constexpr NamedType types[] = {
    named("H5T_IEEE_F32LE_g", "H5T_IEEE_F32BE_g", 4, Type::float32, false),
    named("H5T_IEEE_F64LE_g", "H5T_IEEE_F64BE_g", 8, Type::float64, false),
    named("H5T_STD_I32LE_g", "H5T_STD_I32BE_g", 4, Type::int32, false),
    named("H5T_STD_I64LE_g", "H5T_STD_I64BE_g", 8, Type::int64, false),
    named("H5T_STD_U32LE_g", "H5T_STD_U32BE_g", 4, Type::int32, true),
    named("H5T_STD_U64LE_g", "H5T_STD_U64BE_g", 8, Type::int64, true),
};

bool refuse(const Hdf5& hdf5, const char* function, const char* minor, const Message& message) {
    hdf5.push_error(function, minor, message.text);
    return false;
}

bool examine_type(const Hdf5& hdf5, const char* function, hid_t type, Chunk& chunk) {
    constexpr const char* minor = "H5E_BADTYPE_g";
    if (type < 0)
        return refuse(hdf5, function, minor,
                      Message::format("zfp: filters values of a dataset, and cannot be used on a group"));
    for (const NamedType& known : types) {
        if (hdf5.type_equal(type, hdf5.variable(known.native)) > 0) {
            chunk.type = known.type;
            chunk.is_unsigned = known.is_unsigned;
            return true;
        }
        if (hdf5.type_equal(type, hdf5.variable(known.foreign)) > 0)
            return refuse(hdf5, function, minor,
                          Message::format("zfp: endian targeting is refused: expected %s-endian values as on this "
                                          "machine, got %s-endian; create the dataset with the native type",
                                          little ? "little" : "big", little ? "big" : "little"));
    }
    return refuse(hdf5, function, minor,
                  Message::format("zfp: expected 4- or 8-byte IEEE floats or integers, got datatype class %d of %zu "
                                  "bytes; use shuffle and deflate for such a dataset",
                                  hdf5.type_class(type), hdf5.type_size(type)));
}

// "4x1x6" of a chunk; with `kept`, axes beyond the last four longer than one become 1.
Message shape_text(const hsize_t* extents, unsigned rank, unsigned kept) {
    Message text;
    std::size_t at = 0;
    unsigned longer = 0;
    for (unsigned axis = 0; axis < rank; ++axis) longer += extents[axis] > 1;
    for (unsigned axis = 0; axis < rank && at < sizeof text.text - 24; ++axis) {
        const bool squeeze = extents[axis] > 1 && longer-- > kept;
        at += static_cast<std::size_t>(std::snprintf(text.text + at, sizeof text.text - at,
                                                     axis == 0 ? "%llu" : "x%llu", squeeze ? 1ULL : extents[axis]));
    }
    return text;
}

bool examine_space(const Hdf5& hdf5, const char* function, hid_t space, Chunk& chunk) {
    constexpr const char* minor = "H5E_BADVALUE_g";
    hsize_t extents[max_axes];
    const int rank = hdf5.space_rank(space);
    if (rank < 0 || rank > static_cast<int>(max_axes) || hdf5.space_extents(space, extents, nullptr) < 0)
        return refuse(hdf5, function, minor, Message::format("zfp: the chunk has no simple dataspace"));
    const auto axes = static_cast<unsigned>(rank);
    unsigned longer = 0;
    for (unsigned axis = 0; axis < axes; ++axis) longer += extents[axis] > 1;
    const Message shape = shape_text(extents, axes, max_axes);
    if (longer == 0)
        return refuse(hdf5, function, minor,
                      Message::format("zfp: expected a chunk of more than one value, got %s; use chunks of at least 4 "
                                      "values along an axis",
                                      shape.text));
    if (longer > zfp::max_rank)
        return refuse(hdf5, function, minor,
                      Message::format("zfp: expected a chunk with 1 to 4 axes longer than 1, got %s with %u; use %s",
                                      shape.text, longer, shape_text(extents, axes, zfp::max_rank).text));
    std::array<std::size_t, zfp::max_rank> fastest_first{1, 1, 1, 1};
    unsigned used = 0;
    for (unsigned axis = axes; axis-- > 0;)
        if (extents[axis] > 1) fastest_first[used++] = static_cast<std::size_t>(extents[axis]);
    const hsize_t limit = hsize_t{1} << (48 / used);
    for (unsigned axis = 0; axis < used; ++axis)
        if (fastest_first[axis] > limit)
            return refuse(hdf5, function, minor,
                          Message::format("zfp: chunk %s has an axis of %zu, the ZFP header takes at most %llu for %u "
                                          "axes longer than 1; use a chunk of at most %llu along it",
                                          shape.text, fastest_first[axis], limit, used, limit));
    chunk.layout = Layout::contiguous(used, fastest_first);
    return true;
}

// Whatever runs before zfp on writing hands it bytes that are no values any more.
bool examine_pipeline(const Hdf5& hdf5, const char* function, hid_t dcpl) {
    unsigned flags = 0, config = 0;
    char name[64] = "";
    std::size_t count = 0;
    const int first = hdf5.filter_at(dcpl, 0, &flags, &count, nullptr, sizeof name, name, &config);
    if (first != filter_id)
        return refuse(hdf5, function, "H5E_BADVALUE_g",
                      Message::format("zfp: expected to be the first filter of the pipeline, got filter %d (%s) before "
                                      "it; put shuffle, deflate and fletcher32 after zfp or leave them out",
                                      first, name));
    const int filters = hdf5.filter_count(dcpl);
    for (unsigned i = 1; static_cast<int>(i) < filters; ++i) {
        count = 0;
        if (hdf5.filter_at(dcpl, i, &flags, &count, nullptr, sizeof name, name, &config) == filter_id)
            return refuse(hdf5, function, "H5E_BADVALUE_g",
                          Message::format("zfp: expected once in a pipeline, got it again as filter number %u", i + 1));
    }
    return true;
}

bool examine(const Hdf5& hdf5, const char* function, hid_t dcpl, hid_t type, hid_t space, Chunk& chunk) {
    return hdf5.complete() && examine_type(hdf5, function, type, chunk) &&
           examine_space(hdf5, function, space, chunk) && examine_pipeline(hdf5, function, dcpl);
}

bool configure(const Hdf5& hdf5, const char* function, hid_t dcpl, const Chunk& chunk) {
    constexpr std::size_t most = 64;
    unsigned values[most] = {}, flags = 0, config = 0;
    std::size_t count = most;
    if (hdf5.filter_by_id(dcpl, filter_id, &flags, &count, values, 0, nullptr, &config) < 0)
        return refuse(hdf5, function, "H5E_CANTGET_g", Message::format("zfp: cannot read the filter's parameters"));
    Params params;
    Status status = params_of_request({values, std::min(count, most)}, chunk.type, chunk.layout.rank, params);
    if (status) status = check_request(params, chunk.type);
    if (!status) return refuse(hdf5, function, "H5E_BADVALUE_g", describe(status, chunk.type));
    if (chunk.is_unsigned && !params.lossless())
        return refuse(hdf5, function, "H5E_BADTYPE_g",
                      Message::format("zfp: lossy modes treat unsigned integers as signed, so that values near 0 wrap; "
                                      "use reversible mode, or a signed type"));
    unsigned stored[max_stored] = {};
    status = stored_of_params(params, chunk.type, chunk.layout, stored, count);
    if (!status) return refuse(hdf5, function, "H5E_BADVALUE_g", describe(status, chunk.type));
    if (hdf5.modify_filter(dcpl, filter_id, flags, count, stored) < 0)
        return refuse(hdf5, function, "H5E_CANTINIT_g", Message::format("zfp: cannot store the filter's parameters"));
    return true;
}

// Whether the values of an existing dataset were taken for other numbers: an order of bytes that is not this machine's,
// under a header that does not say so.
bool takes_bytes_for_other_numbers(const Hdf5& hdf5, hid_t dcpl, hid_t type) {
    unsigned values[max_stored] = {}, flags = 0, config = 0;
    std::size_t count = max_stored;
    Stored stored;
    if (hdf5.filter_by_id(dcpl, filter_id, &flags, &count, values, 0, nullptr, &config) < 0) return false;
    const CdValues found{values, std::min(count, max_stored)};
    if (!is_stored(found) || !parse_stored(found, stored) || stored.swapped) return false;
    for (const NamedType& known : types)
        if (hdf5.type_equal(type, hdf5.variable(known.foreign)) > 0) return true;
    return false;
}

// HDF5 asks when a dataset is created, and again before the first write to one that was opened. What cannot be created
// is refused by set_local; what exists must stay writable, unless more harm were done.
htri_t can_apply(hid_t dcpl, hid_t type, hid_t) {
    const Hdf5 hdf5(__builtin_return_address(0));
    if (type < 0 || !hdf5.complete() || !takes_bytes_for_other_numbers(hdf5, dcpl, type)) return 1;
    refuse(hdf5, "can_apply", "H5E_BADTYPE_g",
           Message::format("zfp: this dataset's writer took its bytes for other numbers, in this machine's order; "
                           "copy what is left of it to a dataset of the native type"));
    return -1;
}

herr_t set_local(hid_t dcpl, hid_t type, hid_t space) {
    const Hdf5 hdf5(__builtin_return_address(0));
    Chunk chunk;
    return examine(hdf5, "set_local", dcpl, type, space, chunk) && configure(hdf5, "set_local", dcpl, chunk) ? 0 : -1;
}

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

// Bytes of the chunk that the header describes; 0 where no memory could hold them.
std::size_t chunk_nbytes(const Header& header) {
    std::size_t nbytes = zfp::item_nbytes(header.type);
    for (unsigned axis = 0; axis < header.layout.rank; ++axis) {
        if (header.layout.extent[axis] > std::numeric_limits<std::ptrdiff_t>::max() / nbytes) return 0;
        nbytes *= header.layout.extent[axis];
    }
    return nbytes;
}

struct Outcome {
    Buffer buffer;
    std::size_t nbytes = 0, allocated = 0;
    Message error;
};

Outcome failure(const Message& message) {
    Outcome outcome;
    outcome.error = message;
    return outcome;
}

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
    Outcome outcome{allocate(capacity), 0, capacity, {}};
    if (capacity == 0 || !outcome.buffer) return failure(Message::format("zfp: no memory for %zu bytes", capacity));
    std::size_t end = 0;
    const Status status = kernel().encode(header.type, in, header.layout, header.params, outcome.buffer.get(), 0, end);
    if (!status) return failure(describe(status, header.type));
    outcome.nbytes = (end + 7) / 8;
    if (void* smaller = std::realloc(outcome.buffer.get(), outcome.nbytes)) {
        (void)outcome.buffer.release();
        outcome.buffer.reset(static_cast<std::uint8_t*>(smaller));
        outcome.allocated = outcome.nbytes;
    }
    return outcome;
}

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

std::size_t filter(unsigned flags, std::size_t count, const unsigned* values, std::size_t nbytes,
                   std::size_t* buffer_nbytes, void** buffer) {
    const void* caller = __builtin_return_address(0);
    Stored stored;
    const Status status = parse_stored({values, count}, stored);
    const auto* in = static_cast<const std::uint8_t*>(*buffer);
    const bool reading = (flags & flag_reverse) != 0;
    Outcome outcome = !status   ? failure(describe(status, stored.header.type))
                      : reading ? decode(stored, in, nbytes)
                                : encode(stored, in, nbytes);
    if (!outcome.buffer) {
        Hdf5(caller).push_error("filter", reading ? "H5E_READERROR_g" : "H5E_CANTFILTER_g", outcome.error.text);
        return 0;
    }
    std::free(*buffer);
    *buffer = outcome.buffer.release();
    *buffer_nbytes = outcome.allocated;
    return outcome.nbytes;
}

constexpr FilterClass filter_class{1,         filter_id, 1,     1, "H5Z-ZFP 1.1.1 (tamis, ZFP codec 5)",
                                   can_apply, set_local, filter};

}  // namespace

}  // namespace tamis::plugin

extern "C" {

[[gnu::visibility("default")]] int H5PLget_plugin_type() { return 0; }  // H5PL_TYPE_FILTER

[[gnu::visibility("default")]] const void* H5PLget_plugin_info() { return &tamis::plugin::filter_class; }
}
