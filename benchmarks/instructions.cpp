// One encoding or decoding of a raw array by a kernel or by the libraries that others use, for
// benchmarks/instructions.py to count its instructions.
//
//   tamis_instructions WHO STEP REPEATS FILE TYPE RANK MODE [VALUE]
//
// WHO: a kernel, or `library`, which is libzfp.so.1 or libaec.so.0. STEP: encode or decode. TYPE: int32, int64, float32
// or float64, with MODE accuracy, precision, rate or reversible; or uint16, with MODE szip. The array is a cube.

#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tamis/szip/codec.hpp"
#include "tamis/zfp/codec.hpp"

using namespace tamis;

namespace {

using Bytes = std::vector<std::uint8_t>;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
}

// A function of a library that is loaded, in the form that its header says.
template <class Function>
Function* function(void* library, const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr) fail(std::string("expected the function ") + name + ": " + dlerror());
    return reinterpret_cast<Function*>(found);
}

void* load(const char* name) {
    void* const library = dlopen(name, RTLD_NOW);
    if (library == nullptr) fail(dlerror());
    return library;
}

// Whoever codes: `encode` gives the stream, `decode` the array back.
struct Coder {
    virtual ~Coder() = default;
    virtual Bytes encode(const Bytes& array) = 0;
    virtual void decode(const Bytes& stream, Bytes& array) = 0;
};

struct ZfpCase {
    zfp::Type type;
    unsigned rank;
    std::size_t extent;
    std::string mode;
    double value;
};

class OurZfp : public Coder {
public:
    OurZfp(const ZfpCase& of, const zfp::Kernel& kernel)
        : type_(of.type),
          layout_(zfp::Layout::contiguous(of.rank, {of.extent, of.extent, of.extent, of.extent})),
          kernel_(kernel) {
        for (unsigned axis = of.rank; axis < zfp::max_rank; ++axis) layout_.extent[axis] = 1;
        if (of.mode == "accuracy")
            zfp::set_accuracy(params_, of.value);
        else if (of.mode == "precision")
            zfp::set_precision(params_, static_cast<unsigned>(of.value));
        else if (of.mode == "rate")
            zfp::set_rate(params_, of.value, of.type, of.rank);
        else
            params_ = zfp::reversible_params();
    }
    Bytes encode(const Bytes& array) override {
        Bytes out(zfp::encode_capacity(type_, layout_, params_, 0));
        std::size_t end = 0;
        if (!kernel_.encode(type_, array.data(), layout_, params_, out.data(), 0, end)) fail("encode");
        out.resize((end + 7) / 8);
        return out;
    }
    void decode(const Bytes& stream, Bytes& array) override {
        std::size_t end = 0;
        if (!kernel_.decode(type_, array.data(), layout_, params_, stream, 0, end)) fail("decode");
    }

private:
    zfp::Type type_;
    zfp::Layout layout_;
    const zfp::Kernel& kernel_;
    zfp::Params params_;
};

// libzfp 1.0, by zfp.h.
class TheirZfp : public Coder {
public:
    explicit TheirZfp(const ZfpCase& of) : of_(of), library_(load("libzfp.so.1")) {
        stream_ = function<void*(void*)>(library_, "zfp_stream_open")(nullptr);
        const int type = static_cast<int>(of.type);
        if (of.mode == "accuracy")
            function<double(void*, double)>(library_, "zfp_stream_set_accuracy")(stream_, of.value);
        else if (of.mode == "precision")
            function<unsigned(void*, unsigned)>(library_, "zfp_stream_set_precision")(stream_,
                                                                                      static_cast<unsigned>(of.value));
        else if (of.mode == "rate")
            function<double(void*, double, int, unsigned, int)>(library_, "zfp_stream_set_rate")(stream_, of.value,
                                                                                                 type, of.rank, 0);
        else
            function<void(void*)>(library_, "zfp_stream_set_reversible")(stream_);
    }
    Bytes encode(const Bytes& array) override {
        void* const field = field_of(const_cast<std::uint8_t*>(array.data()));
        Bytes out(function<std::size_t(void*, void*)>(library_, "zfp_stream_maximum_size")(stream_, field));
        attach(out.data(), out.size());
        out.resize(function<std::size_t(void*, void*)>(library_, "zfp_compress")(stream_, field));
        if (out.empty()) fail("zfp_compress");
        return out;
    }
    void decode(const Bytes& stream, Bytes& array) override {
        attach(const_cast<std::uint8_t*>(stream.data()), stream.size());
        if (function<std::size_t(void*, void*)>(library_, "zfp_decompress")(stream_, field_of(array.data())) == 0)
            fail("zfp_decompress");
    }

private:
    void* field_of(void* data) const {
        const int type = static_cast<int>(of_.type);
        const std::size_t n = of_.extent;
        switch (of_.rank) {
            case 1:
                return function<void*(void*, int, std::size_t)>(library_, "zfp_field_1d")(data, type, n);
            case 2:
                return function<void*(void*, int, std::size_t, std::size_t)>(library_, "zfp_field_2d")(data, type, n,
                                                                                                       n);
            case 3:
                return function<void*(void*, int, std::size_t, std::size_t, std::size_t)>(library_, "zfp_field_3d")(
                    data, type, n, n, n);
            default:
                return function<void*(void*, int, std::size_t, std::size_t, std::size_t, std::size_t)>(
                    library_, "zfp_field_4d")(data, type, n, n, n, n);
        }
    }
    void attach(std::uint8_t* data, std::size_t nbytes) const {
        void* const bits = function<void*(void*, std::size_t)>(library_, "stream_open")(data, nbytes);
        function<void(void*, void*)>(library_, "zfp_stream_set_bit_stream")(stream_, bits);
        function<void(void*)>(library_, "zfp_stream_rewind")(stream_);
    }

    ZfpCase of_;
    void* library_;
    void* stream_;
};

constexpr unsigned pixels = 16, line = pixels * szip::most_blocks;

class OurSzip : public Coder {
public:
    explicit OurSzip(const szip::Kernel& kernel) : kernel_(kernel) { params_.coding = {true, false, pixels, 16, line}; }
    Bytes encode(const Bytes& array) override {
        Bytes out(2 * array.size() + 64);
        std::size_t nbytes = 0;
        if (!szip::encode(kernel_, params_, array, out, nbytes)) fail("szip::encode");
        out.resize(nbytes);
        return out;
    }
    void decode(const Bytes& stream, Bytes& array) override {
        if (!szip::decode(kernel_, params_, stream, array)) fail("szip::decode");
    }

private:
    const szip::Kernel& kernel_;
    szip::Params params_;
};

// libaec 1.0, by libaec.h.
class TheirSzip : public Coder {
public:
    Bytes encode(const Bytes& array) override {
        Bytes out(2 * array.size() + 64);
        out.resize(run("aec_buffer_encode", array, out));
        return out;
    }
    void decode(const Bytes& stream, Bytes& array) override { run("aec_buffer_decode", stream, array); }

private:
    struct Stream {
        const std::uint8_t* next_in;
        std::size_t avail_in, total_in;
        std::uint8_t* next_out;
        std::size_t avail_out, total_out;
        unsigned bits_per_sample, block_size, rsi, flags;
        void* state;
    };
    std::size_t run(const char* name, const Bytes& in, Bytes& out) {
        constexpr unsigned preprocess = 8;
        Stream stream{in.data(), in.size(),         0,          out.data(), out.size(), 0, 16,
                      pixels,    szip::most_blocks, preprocess, nullptr};
        if (function<int(Stream*)>(library_, name)(&stream) != 0) fail(name);
        return stream.total_out;
    }

    void* library_ = load("libaec.so.0");
};

std::unique_ptr<Coder> coder_of(const std::string& who, const std::string& type, const ZfpCase& of) {
    const bool is_library = who == "library";
    const zfp::Kernel* const kernel = zfp::find_kernel(who.c_str());
    if (!is_library && kernel == nullptr) fail("expected library or a kernel of this machine, got " + who);
    if (type == "uint16") {
        if (is_library) return std::make_unique<TheirSzip>();
        return std::make_unique<OurSzip>(szip::kernel_like(kernel->name));
    }
    if (is_library) return std::make_unique<TheirZfp>(of);
    return std::make_unique<OurZfp>(of, *kernel);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 8) fail("expected WHO STEP REPEATS FILE TYPE RANK MODE [VALUE]");
    const std::string who = arguments[1], step = arguments[2], type = arguments[5];
    const unsigned long repeats = std::strtoul(arguments[3], nullptr, 10);
    std::ifstream file(arguments[4], std::ios::binary);
    const Bytes array((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ZfpCase of{zfp::Type::float64, static_cast<unsigned>(std::strtoul(arguments[6], nullptr, 10)), 0, arguments[7],
               count > 8 ? std::strtod(arguments[8], nullptr) : 0};
    if (type == "int32") of.type = zfp::Type::int32;
    if (type == "int64") of.type = zfp::Type::int64;
    if (type == "float32") of.type = zfp::Type::float32;
    of.extent = static_cast<std::size_t>(
        std::round(std::pow(static_cast<double>(array.size() / zfp::item_nbytes(of.type)), 1.0 / of.rank)));
    const std::unique_ptr<Coder> coder = coder_of(who, type, of);
    const Bytes stream = coder->encode(array);
    Bytes back(array.size());
    for (unsigned long i = 0; i < repeats; ++i) {
        if (step == "encode")
            coder->encode(array);
        else
            coder->decode(stream, back);
    }
    coder->decode(stream, back);
    // FNV-1a of both, so that all who code can be compared.
    std::uint64_t sum = 0xcbf29ce484222325;
    for (const Bytes* bytes : {&stream, static_cast<const Bytes*>(&back)})
        for (const std::uint8_t byte : *bytes) sum = (sum ^ byte) * 0x100000001b3;
    std::printf("%zu bytes of stream, sum %016llx\n", stream.size(), static_cast<unsigned long long>(sum));
}
