// JSON of one flat object, read strictly and within its bounds. Metadata of a store are anybody's bytes.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string_view>

#ifndef __cpp_lib_to_chars  // libc++ before version 20: integers only
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tamis/once.hpp"
#endif

namespace tamis::hdf5 {

#ifdef __cpp_lib_to_chars
using std::from_chars;
#else
std::from_chars_result from_chars(const char* begin, const char* end, std::integral auto& number) {
    return std::from_chars(begin, end, number);
}

// strtod in the C locale stops where std::from_chars does, once it sees nothing but decimal numbers.
inline std::from_chars_result from_chars(const char* begin, const char* end, double& number) {
    constinit static Once<locale_t> once;
    const locale_t c_locale = once.get([] { return newlocale(LC_ALL_MASK, "C", nullptr); });
    constexpr std::string_view symbols = "+-.0123456789eE";
    char digits[128];
    const char* const last = std::find_if(begin, end, [&](char c) { return symbols.find(c) == symbols.npos; });
    if (static_cast<std::size_t>(last - begin) >= sizeof digits) return {begin, std::errc::result_out_of_range};
    *std::copy(begin, last, digits) = '\0';
    char* stop = digits;
    errno = 0;
    number = strtod_l(digits, &stop, c_locale);
    return {begin + (stop - digits), errno == ERANGE ? std::errc::result_out_of_range : std::errc{}};
}
#endif

// A place in a text. Each reader moves on if it finds what it looks for; if not, it returns false, and the place stays
// or lies within what is wrong.
class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    std::size_t position() const { return at_; }

    bool take(char symbol) {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != symbol) return false;
        ++at_;
        return true;
    }

    bool at_end() {
        skip_space();
        return at_ == text_.size();
    }

    // A string without escapes, which no key or word of ours needs.
    bool read(std::string_view& word) {
        if (!take('"')) return false;
        const std::size_t end = text_.find_first_of("\"\\", at_);
        if (end == text_.npos || text_[end] != '"') return false;
        word = text_.substr(at_, end - at_);
        at_ = end + 1;
        return true;
    }

    // A finite number, or an integer that fits: neither depends on the locale.
    template <class Number>
    bool read(Number& number) {
        skip_space();
        const std::string_view rest = text_.substr(at_);
        const std::size_t sign = rest.starts_with('-');
        if (sign >= rest.size() || rest[sign] < '0' || rest[sign] > '9') return false;  // from_chars takes "inf"
        const char* const end = rest.data() + rest.size();
        const auto [stop, error] = from_chars(rest.data(), end, number);
        if (error != std::errc{}) return false;
        if (stop != end && std::string_view(" \t\r\n,]}").find(*stop) == text_.npos) return false;
        at_ = static_cast<std::size_t>(stop - text_.data());
        return true;
    }

private:
    void skip_space() {
        const std::size_t found = text_.find_first_not_of(" \t\r\n", at_);
        at_ = found == text_.npos ? text_.size() : found;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace tamis::hdf5
