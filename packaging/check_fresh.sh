#!/usr/bin/env bash
# Runs the README's two commands in a clone of what is committed here, as a normal user of a Debian that has nothing but
# what README asks for. Needs root, debootstrap and git; takes half an hour for each Debian on two processors.
# Usage: packaging/check_fresh.sh FOLDER SUITE…
#   FOLDER   where each Debian is installed, in a folder of its own that is kept and used again
#   SUITE    bookworm (Python 3.11), trixie (3.13), sid
# The variable COMMAND replaces "make demo && make test".
set -euo pipefail

fail() {
    echo "check-fresh: $*" >&2
    exit 2
}

(($# >= 2)) || fail "expected FOLDER SUITE…, got: $*"
((EUID == 0)) || fail "expected root, who alone may install a Debian in a folder and enter it"
for program in debootstrap git; do
    command -v "$program" >/dev/null || fail "no $program here: apt-get install $program"
done

# Only this process and its children see what is mounted from here on. The system unmounts it after the last of them,
# however they end.
if [[ $1 != --own-mounts ]]; then
    exec unshare --mount "${BASH_SOURCE[0]}" --own-mounts "$@"
fi
shift

folder=$(realpath -m "$1")
suites=("${@:2}")
command=${COMMAND:-make demo && make test}
project=$(git -c safe.directory=* rev-parse --show-toplevel) # of whatever user
packages=ca-certificates,g++,git,make,python3,python3-dev,python3-venv
certificates=/etc/ssl/certs/ca-certificates.crt
environment=(
    HOME=/home/user USER=user PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 TERM=dumb
    PIP_CERT=$certificates SSL_CERT_FILE=$certificates REQUESTS_CA_BUNDLE=$certificates PIP_DEFAULT_TIMEOUT=180
)

# Install a Debian in a folder, which gets its name once it is complete.
bootstrap() {
    local suite=$1 root=$2 mirror
    echo "check-fresh: installs $suite in $root"
    mkdir -p "$folder"
    rm -rf "$root.new"
    mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ {print $2; exit}' || true)
    debootstrap --variant=minbase --include="$packages" "$suite" "$root.new" ${mirror:+"$mirror"} >"$root.log" 2>&1 || {
        tail -n 5 "$root.log" >&2
        fail "debootstrap cannot install $suite: see $root.log"
    }
    mv "$root.new" "$root"
}

# Mount what programs expect of any Linux, and no more: there is no /dev/shm.
mount_system() {
    mount -t proc proc "$1/proc"
    mount --bind /dev "$1/dev"
    mount -t devpts -o ptmxmode=0666 devpts "$1/dev/pts"
}

# Make a user, who reaches the package index as this machine does, and has a clone of what is committed.
prepare() {
    local root=$1 place
    chroot "$root" id user >/dev/null 2>&1 || chroot "$root" useradd --create-home user
    for place in /etc/hosts /etc/resolv.conf "$certificates" /etc/pip.conf /etc/xdg/pip; do
        mkdir -p "$root$(dirname "$place")"
        if [[ -e $place ]]; then cp -rL "$place" "$root$(dirname "$place")/"; fi
    done
    mkdir -p "$root/home/user/.config"
    if [[ -e ${HOME-}/.config/pip ]]; then cp -r "$HOME/.config/pip" "$root/home/user/.config/"; fi
    rm -rf "$root/home/user/tamis"
    git -c safe.directory=* -C "$project" bundle create -q "$root/home/user/tamis.bundle" HEAD
    chroot "$root" chown -R user: /home/user
    as_user "$root" "git -c advice.detachedHead=false clone -q tamis.bundle tamis 2>/dev/null"
}

as_user() {
    chroot --userspec=user "$1" /usr/bin/env -i "${environment[@]}" bash -c "cd && $2"
}

results=()
failed=0
for suite in "${suites[@]}"; do
    root=$folder/$suite
    if [[ ! -e $root ]]; then bootstrap "$suite" "$root"; fi
    mount_system "$root"
    prepare "$root"
    echo "check-fresh: $suite: $command"
    code=0
    as_user "$root" "cd tamis && { $command; }" 2>&1 | tee "$root.log" || code=$?
    results+=("$suite: exit code $code, the last lines of $root.log:" "$(tail -n 3 "$root.log")")
    if ((code)); then failed=1; fi
done
printf '%s\n' "" "${results[@]}"
exit "$failed"
