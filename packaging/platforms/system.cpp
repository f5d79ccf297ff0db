// What the headers of native/include/tamis/system/ do on Windows: system LIBHDF5_HL, a library that links libhdf5.
#include <fcntl.h>
#include <io.h>

#include <cstdio>
#include <cstring>

#include "tamis/system/file.hpp"
#include "tamis/system/memory.hpp"
#include "tamis/system/numbers.hpp"
#include "tamis/system/scratch_file.hpp"
#include "tamis/system/shared_library.hpp"

namespace {

int failed = 0;

void require(bool condition, const char* what) {
    if (condition) return;
    std::printf("failed: %s\n", what);
    failed = 1;
}

void check_files() {
    const tamis::system::ScratchFile file;
    const std::uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    require(file.number() >= 0 && file.hold(bytes), "a file can be made");
    require(_lseeki64(file.number(), 4, SEEK_SET) == 4, "its position can be set");
    const tamis::system::RangeReader reader(file.number());
    std::uint8_t found[9] = {};
    require(reader.file_nbytes() == sizeof bytes, "its size is known");
    require(reader.read(6, found, 3) && std::memcmp(found, bytes + 6, 3) == 0, "a range is read");
    require(reader.read(0, found, 9) && std::memcmp(found, bytes, 9) == 0, "all is read");
    require(!reader.read(7, found, 3), "a range beyond the end is not there");
    require(_telli64(file.number()) == 4, "the position stays where it is");
    require(tamis::system::RangeReader(file.number()).file_nbytes() == 9, "it can be read once more");
    std::uint8_t next = 0;
    require(_read(file.number(), &next, 1) == 1 && next == 5, "who has it open reads on");
}

void check_libraries(const char* path) {
    using namespace tamis::system;
    require(loaded_library(path) == nullptr, "a library is not loaded by asking for it");
    const HMODULE own = LoadLibraryExA(path, nullptr, LOAD_WITH_ALTERED_SEARCH_PATH);
    require(own != nullptr, "the library loads");
    const SharedLibrary library = loaded_library(path);
    require(library == own, "a loaded library is found by its path");
    void* const direct = symbol(library, "H5LTmake_dataset");
    void* const linked = symbol(library, "H5Dopen2");
    require(direct != nullptr && linked != nullptr, "symbols are found, of linked libraries too");
    require(symbol(library, "H5Dno_such_call") == nullptr, "what nobody defines is not found");
    const SharedLibrary around = library_around(linked);
    require(around != nullptr && around != library, "a library is found by an address in it");
    require(symbol(around, "H5Dopen2") == linked, "it has the symbol at the address");
    require(library_around(&failed) == GetModuleHandleA(nullptr), "an address of the program is that of the program");
    close(around), close(library);
}

void check_numbers() {
    double number = 0;
    const char text[] = "0.1]";
    const auto [stop, error] = tamis::system::from_chars(text, text + 4, number);
    require(error == std::errc{} && stop == text + 3 && number == 0.1, "a number is read");
}

}  // namespace

int main(int count, char** words) {
    check_files();
    check_numbers();
    if (count == 2) check_libraries(words[1]);
    std::printf("%s\n", failed != 0 ? "some checks failed" : "files, libraries and numbers of the system: as expected");
    return failed;
}
