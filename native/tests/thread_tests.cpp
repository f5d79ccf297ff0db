// Eight threads at once in the codec, the filters of bytes and the plugin's callbacks: on arrays that all read, and on
// arrays of their own. Each must find what the others find. Then each shares arrays with further threads. Built with
// ThreadSanitizer (TAMIS_SANITIZE_THREADS) any race ends it.
//
//   tamis_thread_tests [rounds = 40] [seed = 1]

#include <atomic>
#include <functional>
#include <thread>

#include "filter_cases.hpp"
#include "parallel_cases.hpp"
#include "plugin_cases.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

constexpr unsigned thread_count = 8;

struct Shared {
    Array array;
    Params params;
    Bytes items;  // for the filters of bytes
    Words nbit, scaleoffset;
    Bytes nbit_items, scaleoffset_items;
    Case chunk;
    Bytes chunk_bytes;
};

Shared make_shared(Random& random) {
    const Type type = random_type(random);
    const Layout layout = random_layout(random);
    Array array(type, layout);
    fill(random, array, random_values(random));
    const Words nbit = nbit_values(random), scaleoffset = scaleoffset_values(random);
    const Case chunk = random_case(random);
    return {std::move(array),
            random_params(random, type, layout.rank),
            random_bytes(random, random.below(6000)),
            nbit,
            scaleoffset,
            random_bytes(random, std::size_t{nbit[2]} * nbit[4]),
            items_for(random, scaleoffset),
            chunk,
            random_chunk(random, chunk)};
}

void append(Bytes& all, std::span<const std::uint8_t> more) { all.insert(all.end(), more.begin(), more.end()); }

void append(Bytes& all, std::uint64_t number) {
    for (unsigned i = 0; i < 8; ++i) all.push_back(static_cast<std::uint8_t>(number >> 8 * i));
}

// Each of these returns all that it found.

Bytes coded(const zfp::Kernel& kernel, const Array& array, const Params& params) {
    const Layout& layout = array.layout();
    const Exact out(zfp::encode_capacity(array.type(), layout, params, 0));
    std::size_t end = 0;
    const Status status = kernel.encode(array.type(), array.origin(), layout, params, out.data(), 0, end);
    Bytes found{static_cast<std::uint8_t>(status.code)};
    if (!status) return found;
    append(found, end);
    append(found, out.span().first((end + 7) / 8));
    Array back(array.type(), Layout::contiguous(layout.rank, layout.extent));
    std::size_t read = 0;
    require(static_cast<bool>(kernel.decode(array.type(), back.origin(), back.layout(), params, out.span(), 0, read)),
            "what was encoded is decoded");
    require(read == end, "decode ends where encode ended");
    for (const std::uint64_t value : back.values()) append(found, value);
    return found;
}

Bytes decoded(const zfp::Kernel& kernel, const Array& like, const Params& params,
              std::span<const std::uint8_t> stream) {
    Array back(like.type(), Layout::contiguous(like.layout().rank, like.layout().extent));
    std::size_t end = 0;
    const Status status = kernel.decode(like.type(), back.origin(), back.layout(), params, stream, 0, end);
    require(static_cast<bool>(status), "a stream that all threads read is decoded");
    Bytes found;
    for (const std::uint64_t value : back.values()) append(found, value);
    return found;
}

Bytes shuffled(const Bytes& items) {
    Bytes found;
    for (const std::size_t itemsize : {1, 2, 4, 7, 8, 24}) {
        const std::size_t whole = items.size() / itemsize * itemsize;
        const std::span<const std::uint8_t> in(items.data(), whole);
        const Memory out(whole), back(whole);
        filters::shuffle(in, itemsize, out.data());
        append(found, out.span());
        filters::unshuffle(out.span(), itemsize, back.data());
        require(std::equal(in.begin(), in.end(), back.data()), "unshuffle undoes shuffle");
        filters::bitshuffle(in, itemsize, 64, out.data());
        append(found, out.span());
        filters::bitunshuffle(out.span(), itemsize, 64, back.data());
        require(std::equal(in.begin(), in.end(), back.data()), "bitunshuffle undoes bitshuffle");
    }
    append(found, filters::fletcher32(items));
    return found;
}

Bytes packed_by_nbit(const Words& values, const Bytes& items) {
    filters::nbit::Chunk chunk;
    require(static_cast<bool>(filters::nbit::survey(values, items.size(), chunk)), "a sound type is taken");
    const Memory packed(filters::nbit::encoded_nbytes(chunk)), out(items.size());
    filters::nbit::encode(values, chunk, items.data(), packed.span());
    filters::nbit::decode(values, chunk, packed.span(), out.span());
    Bytes found = packed.bytes();
    append(found, out.span());
    return found;
}

Bytes packed_by_scaleoffset(const Words& values, const Bytes& items) {
    filters::scaleoffset::Params params;
    require(static_cast<bool>(filters::scaleoffset::parse(values, params)), "sound values are taken");
    filters::scaleoffset::Plan plan;
    if (params.verbatim() || !filters::scaleoffset::plan(params, items.data(), plan)) return {};
    const Memory packed(plan.encoded_nbytes), out(items.size());
    filters::scaleoffset::encode(params, plan, items.data(), packed.span());
    filters::scaleoffset::Header header;
    require(static_cast<bool>(filters::scaleoffset::open(params, packed.span(), header)), "what was packed is opened");
    filters::scaleoffset::decode(params, header, packed.span(), out.data());
    Bytes found = packed.bytes();
    append(found, out.span());
    return found;
}

// H5Dcreate, H5Dwrite and H5Dread, as a libhdf5 of its own would call them in each thread.
Bytes through_plugin(const Case& c, const Bytes& values) {
    fake = {};
    fake.type = 1;  // float32
    fake.rank = 2;
    fake.extents = {8, 12};
    fake.pipeline.push_back({hdf5::filter_id, hdf5::flag_optional, {1, 0, 0, 0x40200000}});
    require(filter().can_apply(1, fake.type, 1) == 1 && filter().set_local(1, fake.type, 1) == 0, "rate 8 is taken");
    Bytes found;
    for (const unsigned word : fake.pipeline[0].values) append(found, word);

    Chunk chunk(values, 0);
    found.push_back(chunk.apply(hdf5::flag_optional, c.words));
    append(found, chunk.bytes());
    if (found[found.size() - 1 - chunk.bytes().size()] != 0) {
        require(chunk.apply(hdf5::flag_reverse, c.words), "what was filtered is read");
        append(found, chunk.bytes());
    }
    return found;
}

Bytes all_of(const Shared& s) {
    Bytes found = coded(*zfp::chosen_kernel().kernel, s.array, s.params);
    for (const zfp::Kernel* kernel : zfp::available_kernels()) append(found, coded(*kernel, s.array, s.params));
    append(found, shuffled(s.items));
    append(found, packed_by_nbit(s.nbit, s.nbit_items));
    append(found, packed_by_scaleoffset(s.scaleoffset, s.scaleoffset_items));
    append(found, through_plugin(s.chunk, s.chunk_bytes));
    return found;
}

// Run in all threads, which begin together.
void in_threads(const std::function<void(unsigned)>& work) {
    std::atomic<unsigned> waiting{thread_count};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < thread_count; ++thread)
        threads.emplace_back([&, thread] {
            for (--waiting; waiting > 0;) std::this_thread::yield();
            work(thread);
        });
    for (auto& each : threads) each.join();
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [rounds, seed, unused] = fuzz_arguments(count > 1 ? count : 1, arguments);
    const std::size_t number = count > 1 ? rounds : 40;
    std::vector<Shared> shared;
    for (std::size_t i = 0; i < number; ++i) {
        Random random(seed, i);
        shared.push_back(make_shared(random));
    }

    // The threads are the first in the library: what is set up on the first call is set up by eight at once.
    std::vector<std::vector<Bytes>> found(thread_count, std::vector<Bytes>(number)), own = found;
    in_threads([&](unsigned thread) {
        for (std::size_t i = 0; i < number; ++i) {
            const std::size_t at = (i + thread * number / thread_count) % number;
            place = {"array that all threads read", at};
            found[thread][at] = all_of(shared[at]);
            place = {"array of one thread", at};
            Random random(seed, at);
            own[thread][at] = all_of(make_shared(random));
        }
    });
    for (std::size_t i = 0; i < number; ++i) {
        place = {"comparison", i};
        const Bytes alone = all_of(shared[i]);
        for (unsigned thread = 0; thread < thread_count; ++thread)
            require(found[thread][i] == alone && own[thread][i] == alone, "eight threads find what one finds");
    }

    // Streams that all threads decode, each by one of the kernels.
    const auto kernels = zfp::available_kernels();
    std::vector<Bytes> streams(number);
    unsigned taken = 0;
    for (std::size_t i = 0; i < number; ++i) {
        const Array& array = shared[i].array;
        const Exact out(zfp::encode_capacity(array.type(), array.layout(), shared[i].params, 0));
        std::size_t end = 0;
        if (!zfp::portable_kernel.encode(array.type(), array.origin(), array.layout(), shared[i].params, out.data(), 0,
                                         end))
            continue;
        append(streams[i], out.span());
        ++taken;
    }
    require(2 * taken > number, "most arrays are taken");
    in_threads([&](unsigned thread) {
        for (std::size_t i = 0; i < number; ++i) {
            if (streams[i].empty()) continue;
            place = {"stream that all threads read", i};
            found[thread][i] =
                decoded(*kernels[thread % kernels.size()], shared[i].array, shared[i].params, streams[i]);
        }
    });
    for (std::size_t i = 0; i < number; ++i)
        for (unsigned thread = 1; thread < thread_count; ++thread)
            require(streams[i].empty() || found[thread][i] == found[0][i], "eight threads decode the same");

    for (const zfp::Kernel* each : kernels) require_chain_becomes_true(*each);
    in_threads([&](unsigned thread) {
        for (std::size_t i = 0; i < number; ++i) {
            place = {"array that threads share", thread_count * i + thread};
            Random random(seed + 1, place.number);
            threads_agree(random, *kernels[thread % kernels.size()]);
        }
    });
    std::printf("%zu rounds in %u threads: nothing found\n", number, thread_count);
}
