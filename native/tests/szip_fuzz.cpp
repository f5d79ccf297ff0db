// szip under fire: chunks of all kinds, streams of any encoder, damaged streams and damaged parameters; meant for
// -DTAMIS_SANITIZE=ON. All kernels of this machine write the same streams, and read and refuse the same.
//
//   tamis_szip_fuzz [cases = 200000] [seed = 1] [first case = 0]

#include "szip_cases.hpp"
#include "tamis/zfp/codec.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

using filters::Code;
using filters::Status;

std::vector<const szip::Kernel*> all_kernels() {
    std::vector<const szip::Kernel*> kernels{&szip::portable_kernel};
    for (const zfp::Kernel* like : zfp::available_kernels()) {
        const szip::Kernel* const kernel = &szip::kernel_like(like->name);
        if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    }
    return kernels;
}

// With exactly the memory that the kernel was told.
struct Result {
    Status status;
    Bytes bytes;
};

Result encode(const szip::Kernel& kernel, const szip::Params& params, const Bytes& bytes, std::size_t room) {
    const Memory in(bytes), out(room);
    std::size_t nbytes = 0;
    const Status status = szip::encode(kernel, params, in.span(), out.span(), nbytes);
    return {status, status ? Bytes(out.data(), out.data() + nbytes) : Bytes()};
}

Result decode(const szip::Kernel& kernel, const szip::Params& params, const Bytes& bytes, std::size_t nbytes) {
    const Memory in(bytes), out(nbytes);
    const Status status = szip::decode(kernel, params, in.span(), out.span());
    return {status, status ? out.bytes() : Bytes()};
}

void damage_values(Random& random, Words& values) {
    constexpr unsigned edges[] = {0, 1, 2, 7, 8, 9, 16, 31, 32, 33, 63, 64, 4096, 0x7fffffff, 0xffffffff};
    unsigned& value = values[random.below(values.size())];
    switch (random.below(4)) {
        case 0:
            value = edges[random.below(std::size(edges))];
            break;
        case 1:
            value += random.one_in(2) ? 1u : ~0u;
            break;
        case 2:
            value ^= 1u << random.below(32);
            break;
        default:
            values.resize(random.below(6));
    }
}

// Returns whether the damage was taken for a stream.
bool try_once(Random& random, const std::vector<const szip::Kernel*>& kernels, Sum& streams) {
    Words values = random_szip_values(random);
    szip::Params params;
    require(static_cast<bool>(szip::parse(values, params)), "sound parameters are taken");
    const Bytes pixels = random_pixels(random, values, params);
    const std::size_t enough = 2 * pixels.size() + 20000;  // also for one pixel of a long line
    const Result stream = encode(*kernels[0], params, pixels, enough);
    require(static_cast<bool>(stream.status), "pixels within their width are taken");
    streams.add(stream.bytes);
    for (const szip::Kernel* kernel : kernels) {
        require(encode(*kernel, params, pixels, stream.bytes.size()).bytes == stream.bytes, "kernels write the same");
        require(encode(*kernel, params, pixels, stream.bytes.size() - 1).status.code == Code::no_room,
                "a stream that has no room is refused");
        std::size_t nbytes = 0;
        require(szip::measure(*kernel, {&params, 1}, Memory(pixels).span(), &nbytes) && nbytes == stream.bytes.size(),
                "the length is found without the stream");
        require(decode(*kernel, params, stream.bytes, pixels.size()).bytes == pixels, "pixels come back");
    }
    const Bytes other_stream = any_szip_stream(random, params, pixels);
    for (const szip::Kernel* kernel : kernels)
        require(decode(*kernel, params, other_stream, pixels.size()).bytes == pixels, "other encoders are read");
    Bytes damaged = random.one_in(2) ? stream.bytes : other_stream;
    if (random.one_in(8))
        damaged = random_bytes(random, random.below(2000));
    else if (!random.one_in(16))
        mutate(random, damaged);
    if (random.one_in(4)) damage_values(random, values);
    if (!szip::parse(values, params)) return false;
    const std::size_t pixel = params.pixel_nbytes();
    const std::size_t nbytes = (random.one_in(8) ? random.below(40000) : pixels.size()) / pixel * pixel;
    const Result first = decode(*kernels[0], params, damaged, nbytes);
    const Result again = encode(*kernels[0], params, damaged, random.below(4000));
    for (const szip::Kernel* kernel : kernels) {
        const Result other = decode(*kernel, params, damaged, nbytes);
        require(static_cast<bool>(other.status) == static_cast<bool>(first.status), "kernels refuse the same streams");
        require(other.bytes == first.bytes, "kernels read the same");
        const Result more = encode(*kernel, params, damaged, random.one_in(2) ? 0 : 40000);
        require(more.status.code == again.status.code || more.status.code == Code::no_room ||
                    again.status.code == Code::no_room,
                "kernels refuse the same pixels");
    }
    return static_cast<bool>(first.status);
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [cases, seed, first] = fuzz_arguments(count, arguments);
    const auto kernels = all_kernels();
    std::uint64_t taken = 0;
    Sum streams;
    for (std::uint64_t i = first; i < first + cases; ++i) {
        Random random(seed, i);
        place = {"case of szip", i};
        taken += try_once(random, kernels, streams);
    }
    std::printf(
        "%zu kernels, %llu cases of seed %llu, damage taken for a stream in %llu, sum of the streams %016llx: "
        "nothing found\n",
        kernels.size(), static_cast<unsigned long long>(cases), static_cast<unsigned long long>(seed),
        static_cast<unsigned long long>(taken), streams.get());
}
