#!/bin/sh
# Says in one sentence what a build needs and this machine lacks, before pip and CMake say it in many lines.
# Usage: packaging/check_requirements.sh PYTHON; run by make before it creates an environment.
python=$1

fail() {
    echo "make: $1" >&2
    exit 1
}

install() {
    echo "apt-get install $1 (Debian, Ubuntu) or dnf install $2 (Fedora)"
}

first_of() {
    for program; do
        # What follows the first word of CXX are options, or a compiler after its launcher.
        if command -v "${program%% *}" >/dev/null; then
            echo "$program"
            break
        fi
    done
}

command -v "$python" >/dev/null ||
    fail "expected Python 3.11 or newer, found no $python: $(install 'python3 python3-dev python3-venv' 'python3 python3-devel')"
version=$("$python" -c 'import platform; print(platform.python_version())')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "expected Python 3.11 or newer, found $version ($python): install a newer one, and name it: make PYTHON=python3.12"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "expected venv and ensurepip for Python $version, found none: $(install python3-venv python3)"
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$headers/Python.h" ] ||
    fail "expected the headers of Python $version, found no $headers/Python.h: $(install python3-dev python3-devel)"

if [ -n "${CXX-}" ]; then compiler=$(first_of "$CXX"); else compiler=$(first_of c++ g++ clang++); fi
[ -n "$compiler" ] ||
    fail "expected a compiler for C++20, such as g++ 12, found no ${CXX:-c++}: $(install g++ gcc-c++)"
$compiler -std=c++20 -x c++ -fsyntax-only - <"$(dirname "$0")/requirements.cpp" 2>/dev/null ||
    fail "expected a compiler for C++20, such as g++ 12 or clang++ 16, found $($compiler --version | head -n 1): install a newer one, and name it: make CXX=g++-12"
