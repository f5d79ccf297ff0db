// All kernels of this machine give the same bytes and values, and refuse the same: on generated arrays of every type,
// rank, layout and mode, and on damaged streams of them. So do threads that share an array, which every 40th case is
// for.
//
//   tamis_kernels_agree [cases = 100000] [seed = 1] [first case = 0]

#include "parallel_cases.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

struct Result {
    Status status;
    std::size_t end = 0;
    std::vector<std::uint8_t> bytes;    // of the stream
    std::vector<std::uint64_t> values;  // as bit patterns

    void require_same(const Result& other) const {
        require(status.code == other.status.code && status.where == other.status.where, "kernels refuse the same");
        if (!status) return;
        require(end == other.end, "kernels end at the same bit");
        require(bytes == other.bytes, "kernels write the same bytes");
        require(values == other.values, "kernels read the same values");
    }
};

Result encode(const zfp::Kernel& kernel, const Array& array, const Params& params, std::size_t start) {
    const Exact out(zfp::encode_capacity(array.type(), array.layout(), params, start));
    std::memset(out.data(), 0xff, out.size());
    Result result;
    result.status = kernel.encode(array.type(), array.origin(), array.layout(), params, out.data(), start, result.end);
    if (result.status) result.bytes.assign(out.data(), out.data() + (result.end + 7) / 8);
    return result;
}

Result decode(const zfp::Kernel& kernel, const Array& like, const Params& params, const Exact& in, std::size_t start) {
    Array array(like.type(), like.layout());
    Result result;
    result.status = kernel.decode(array.type(), array.origin(), array.layout(), params, in.span(), start, result.end);
    if (result.status) result.values = array.values();
    require(array.gaps_untouched(), "decode writes nothing between the values");
    return result;
}

// The first kernel is compared with each of the others. Returns whether the array was encoded.
bool agree(Random& random, Sum& streams) {
    const Type type = random_type(random);
    const Layout layout = random_layout(random);
    const Params params = random_params(random, type, layout.rank);
    Array array(type, layout);
    fill(random, array, random_values(random));
    const std::size_t start = random.below(70);
    const auto kernels = zfp::available_kernels();
    const Result encoded = encode(*kernels[0], array, params, start);
    for (std::size_t i = 1; i < kernels.size(); ++i) encode(*kernels[i], array, params, start).require_same(encoded);
    if (!encoded.status) return false;
    streams.add(encoded.bytes);
    std::vector<std::uint8_t> bytes = encoded.bytes;
    for (const bool damaged : {false, true}) {
        if (damaged) mutate(random, bytes);
        const Exact in(bytes);
        const Result decoded = decode(*kernels[0], array, params, in, start);
        require(damaged || decoded.end == encoded.end, "what was encoded is decoded");
        for (std::size_t i = 1; i < kernels.size(); ++i)
            decode(*kernels[i], array, params, in, start).require_same(decoded);
    }
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    auto [cases, seed, first] = fuzz_arguments(count, arguments);
    if (count < 2) cases = 100000;
    std::uint64_t encoded = 0;
    Sum streams;
    const zfp::KernelList list = zfp::available_kernels();
    const std::vector<const zfp::Kernel*> kernels(list.begin(), list.end());
    for (const zfp::Kernel* each : kernels) require_chain_becomes_true(*each);
    for (std::uint64_t i = first; i < first + cases; ++i) {
        Random random(seed, i);
        place = {"case", i};
        encoded += agree(random, streams);
        if (i % 40 == 0) threads_agree(random, *random.pick(kernels));
    }
    std::printf("%zu kernels agree on %llu cases of seed %llu, %llu of them encoded, sum of the streams %016llx\n",
                kernels.size(), static_cast<unsigned long long>(cases), static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(encoded), streams.get());
}
