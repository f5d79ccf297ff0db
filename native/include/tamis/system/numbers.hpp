// Numbers of texts, whatever the locale is.
#pragma once

#include <charconv>

#ifndef __cpp_lib_to_chars  // libc++: integers only, or floats on new systems only
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "tamis/once.hpp"
#endif

namespace tamis::system {

#ifdef __cpp_lib_to_chars
using std::from_chars;
#else
namespace detail {

#ifdef _WIN32
using Locale = _locale_t;
inline Locale c_locale() { return _create_locale(LC_ALL, "C"); }
inline double to_double(const char* text, char** stop, Locale locale) { return _strtod_l(text, stop, locale); }
#else
using Locale = locale_t;
inline Locale c_locale() { return newlocale(LC_ALL_MASK, "C", nullptr); }
inline double to_double(const char* text, char** stop, Locale locale) { return strtod_l(text, stop, locale); }
#endif

}  // namespace detail

std::from_chars_result from_chars(const char* begin, const char* end, std::integral auto& number) {
    return std::from_chars(begin, end, number);
}

// strtod in the C locale stops where std::from_chars does, once it sees nothing but decimal numbers.
inline std::from_chars_result from_chars(const char* begin, const char* end, double& number) {
    constinit static Once<detail::Locale> once;
    const detail::Locale c_locale = once.get([] { return detail::c_locale(); });
    constexpr std::string_view symbols = "+-.0123456789eE";
    char digits[128];
    const char* const last = std::find_if(begin, end, [&](char c) { return symbols.find(c) == symbols.npos; });
    if (static_cast<std::size_t>(last - begin) >= sizeof digits) return {begin, std::errc::result_out_of_range};
    *std::copy(begin, last, digits) = '\0';
    char* stop = digits;
    errno = 0;
    number = detail::to_double(digits, &stop, c_locale);
    return {begin + (stop - digits), errno == ERANGE ? std::errc::result_out_of_range : std::errc{}};
}
#endif

}  // namespace tamis::system
