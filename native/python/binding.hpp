// What the parts of the Python module share: memory of Python objects, and results that may be a Failure.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

#include "tamis/chunks/box.hpp"
#include "tamis/chunks/deflate.hpp"
#include "tamis/chunks/write.hpp"
#include "tamis/filters/status.hpp"
#include "tamis/zfp/codec.hpp"
#include "tamis/zfp/status.hpp"

namespace tamis::python {

namespace nb = nanobind;

// Why a call did not succeed, whichever part of the library says so.
struct Failure {
    Failure(const zfp::Status& status);
    Failure(const filters::Status& status);

    const char* code;
    std::size_t where;
};

template <class Value>
using Or = std::variant<Value, Failure>;

// A view of an object's memory that holds it for as long as it lives.
class Buffer {
public:
    Buffer(nb::handle object, int flags) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    const Py_buffer& operator*() const { return view_; }
    std::span<const std::uint8_t> bytes() const {
        return {static_cast<const std::uint8_t*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

private:
    Py_buffer view_{};
};

// The interpreter's lock is released for as long as it lives.
//
// A daemon thread that asks for the lock after the interpreter has ended gets no further: Python up to 3.13 calls
// pthread_exit, whose unwinding would pass through destructors that may not throw and ends the process by SIGABRT. It
// is stopped here, and the thread waits for the end of the process, as Python 3.14 lets it.
class Unlocked {
public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {  // never left: glibc does not let an end of a thread be caught for good
            for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
        }
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    PyThreadState* state_;
};

// Whether work on so many bytes takes longer than handing the interpreter's lock to another thread and getting it back:
// for the codec, at about 1 GB/s, and for quick work, at 10 GB/s and more.
inline bool worth_unlocking(Py_ssize_t nbytes) { return nbytes >= Py_ssize_t{1} << 15; }
inline bool quick_worth_unlocking(Py_ssize_t nbytes) { return nbytes >= Py_ssize_t{1} << 19; }

// 'f' or 'd' of native floats, 0 of anything else.
char float_format(const Py_buffer& view);

// The codec's kernel; tests change it.
const zfp::Kernel& kernel_in_use();

// Of 1 to 32 axes; raises ValueError for others.
chunks::Shape shape_of(const std::vector<std::size_t>& extents);

// Bound by `use_libdeflate`.
const chunks::Libdeflate& libdeflate_in_use();

// The terms of chunks that zfp encodes, with marks of its type, which must live as long; raises ValueError if the
// pipeline does not encode with this mask, and TypeError for other marks.
chunks::Loss loss_of(const chunks::Pipeline& pipeline, std::uint32_t mask, const Buffer& marks,
                     std::tuple<double, double> limits, std::optional<double> bound);

void bind_chunks(nb::module_& m);
void bind_datasets(nb::module_& m);
void bind_zfp(nb::module_& m);
void bind_filters(nb::module_& m);
void bind_rounding(nb::module_& m);
void bind_szip(nb::module_& m);
void bind_values(nb::module_& m);

}  // namespace tamis::python
