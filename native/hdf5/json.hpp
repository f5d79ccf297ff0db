// JSON of one flat object, read strictly and within its bounds. Metadata of a store are anybody's bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <system_error>

#include "tamis/system/numbers.hpp"

namespace tamis::hdf5 {

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
        const auto [stop, error] = system::from_chars(rest.data(), end, number);
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
