# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tools/quickstart and tools/check share: packages, the CUDA headers and NVRTC, configuring a build.
# Sourced by scripts that run with `set -euo pipefail` and stand in the repository root.
#
# After setup_all these are set:
#   toolkit_include   directory of cuda.h and nvrtc.h
#   nvrtc_dir         directory of libnvrtc.so
#   use_wheels        yes or no: both are those of .toolkit, which only what is run from a build tree may use

oldest_cuda=12030 # CUDA_VERSION of the oldest toolkit whose NVRTC the library accepts (src/compile/compile.h)
toolkit_dir=$PWD/.toolkit
# NVIDIA's wheels: libnvrtc with nvrtc.h; cuda.h.
wheels=('nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*')
# Only `gemmjit show --emit sass` uses it. Newer than NVRTC because there is no wheel of 13.0.
disassembler_wheel='nvidia-cuda-nvdisasm==13.2.*'

step() {
    printf '== %s\n' "$*"
}

note() {
    printf '   %s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# ---- packages ----

can_compile() { # LANGUAGE COMPILER HEADER
    have "$2" && printf '#include <%s>\n' "$3" | "$2" -x "$1" -fsyntax-only - >/dev/null 2>&1
}

meson_is_usable() {
    local version
    version=$(meson --version 2>/dev/null) && [ "${version%%.*}" -ge 1 ]
}

has_pip() {
    python3 -m pip --version >/dev/null 2>&1
}

has_clang_format() {
    [[ "$(clang-format-14 --version 2>/dev/null || clang-format --version 2>/dev/null)" == *'version 14.'* ]]
}

# Prints the Debian names of what is missing, one a line. Arguments: optional needs: pip, c++, format.
missing_packages() {
    local need
    can_compile c gcc stdio.h || printf '%s\n' gcc libc6-dev
    meson_is_usable || echo meson
    have ninja || echo ninja-build
    have python3 || echo python3
    have pkg-config || echo pkg-config
    pkg-config --exists libcjson 2>/dev/null || echo libcjson-dev
    pkg-config --exists libxxhash 2>/dev/null || echo libxxhash-dev
    pkg-config --exists cmocka 2>/dev/null || echo libcmocka-dev
    pkg-config --exists libcurl 2>/dev/null || echo libcurl4-openssl-dev
    have spin || echo spin
    for need in "$@"; do
        case $need in
        pip) has_pip || printf '%s\n' python3-pip ca-certificates ;;
        c++) can_compile c++ g++ cstdlib || echo g++ ;;
        format) has_clang_format || echo clang-format-14 ;;
        esac
    done
}

# Installs packages by apt, as root or through sudo. Arguments: package names.
apt_install() {
    local as_root=() apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300) log
    have apt-get || die "missing here: $*. This script installs them with apt-get only; install them by hand"
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || die "missing here: $*. To install them run this as root, or install sudo"
        as_root=(sudo)
        [ -t 0 ] || as_root+=(-n)
    fi
    log=$(mktemp)
    "${as_root[@]}" "${apt[@]}" update </dev/null >"$log" 2>&1 ||
        note "apt-get update reported an error; going on with the package lists at hand"
    if ! "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "$@" </dev/null >>"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "apt-get could not install: $*; its messages stand above"
    fi
    rm -f "$log"
}

# Arguments as of missing_packages. Touches neither apt nor sudo when nothing is missing.
setup_packages() {
    local missing
    missing=$(missing_packages "$@" | xargs)
    if [ -z "$missing" ]; then
        step "packages: all there"
        return
    fi
    step "packages: installing $missing"
    # shellcheck disable=SC2086 # one word a package
    apt_install $missing
    meson_is_usable || die "meson $(meson --version 2>/dev/null) is too old: 1.0 or later is needed"
    missing=$(missing_packages "$@" | xargs)
    [ -z "$missing" ] || die "still missing after apt-get installed them: $missing"
}

# ---- CUDA headers and NVRTC ----

# Looks for cuda.h, nvrtc.h and libnvrtc below $CUDA_HOME, $CUDA_PATH and /usr/local/cuda.
find_toolkit() {
    local root version library
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        if [ -z "$root" ] || [ ! -f "$root/include/cuda.h" ] || [ ! -f "$root/include/nvrtc.h" ]; then
            continue
        fi
        version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$root/include/cuda.h")
        if [ "${version:-0}" -lt "$oldest_cuda" ]; then
            note "$root: CUDA $((version / 1000)).$((version % 1000 / 10)) is too old: unset what names it"
            continue
        fi
        for library in "$root"/{lib64,lib,targets/*-linux/lib}/libnvrtc.so.1[2-9]; do
            [ -f "$library" ] || continue
            toolkit_include=$root/include nvrtc_dir=${library%/*}
            return 0
        done
    done
    return 1
}

# Installs wheels into a fresh directory. Arguments: directory, pip's options and requirements.
pip_unpack() {
    local directory=$1
    shift
    mkdir -p "$directory"
    # The index and certificates come from pip's own configuration; what concerns environments does not apply.
    env TMPDIR="$directory" PIP_USER=no PIP_REQUIRE_VIRTUALENV=no PIP_DISABLE_PIP_VERSION_CHECK=1 \
        python3 -m pip install --quiet --no-input --no-deps --no-compile --only-binary=:all: \
        --root-user-action=ignore --target "$directory/site" "$@" </dev/null
}

wheels_are_complete() {
    [ "$(cat "$toolkit_dir/wheels.txt" 2>/dev/null)" = "${wheels[*]}" ] &&
        [ -f "$toolkit_dir/include/cuda.h" ] && [ -f "$toolkit_dir/include/nvrtc.h" ] &&
        [ -f "$toolkit_dir/lib/libnvrtc.so.13" ] &&
        compgen -G "$toolkit_dir/lib/libnvrtc-builtins.so.13*" >/dev/null
}

# Runs a command while no other set-up of this tree writes into .toolkit.
with_toolkit_lock() {
    mkdir -p "$toolkit_dir"
    (
        flock 9
        rm -rf "$toolkit_dir"/stage.*
        "$@" 9>&-
    ) 9>"$toolkit_dir/lock"
}

# Fills .toolkit/include and .toolkit/lib. wheels.txt is written last, so an interrupted run is repeated.
fetch_wheels() {
    local stage=$toolkit_dir/stage.$$ root
    wheels_are_complete && return
    step "CUDA headers and NVRTC: fetching ${wheels[*]}"
    if ! pip_unpack "$stage" "${wheels[@]}"; then
        rm -rf "$stage"
        die "pip could not fetch ${wheels[*]}; its message stands above"
    fi
    root=$stage/site/nvidia/cu13
    if [ ! -f "$root/include/cuda.h" ] || [ ! -f "$root/lib/libnvrtc.so.13" ]; then
        die "the wheels ${wheels[*]} do not hold include/cuda.h and lib/libnvrtc.so.13 where expected"
    fi
    rm -rf "${toolkit_dir:?}"/{include,lib,wheels.txt}
    mkdir "$toolkit_dir/lib"
    mv "$root"/lib/libnvrtc.so.* "$root"/lib/libnvrtc-builtins.so.* "$toolkit_dir/lib/"
    mv "$root/include" "$toolkit_dir/include"
    rm -rf "$stage"
    echo "${wheels[*]}" >"$toolkit_dir/wheels.txt"
}

has_disassembler() {
    have nvdisasm || [ -x "$nvrtc_dir/../bin/nvdisasm" ] || [ -x "$toolkit_dir/bin/nvdisasm" ]
}

# Fills .toolkit/bin with nvdisasm where no other is in reach. Optional: says so when it cannot.
fetch_disassembler() {
    local stage=$toolkit_dir/stage.$$
    mkdir -p "$toolkit_dir/bin"
    if ! pip_unpack "$stage" --retries 1 "$disassembler_wheel" 2>/dev/null ||
        ! mv -f "$stage/site/nvidia/cu13/bin/nvdisasm" "$toolkit_dir/bin/nvdisasm"; then
        note "nvdisasm could not be fetched: gemmjit show --emit sass will not work, all else will"
    fi
    rm -rf "$stage"
}

# Keeps the library from finding another NVRTC before the one of the wheels, in this process and its children.
hide_other_nvrtc() {
    local entry kept=''
    unset CUDA_HOME CUDA_PATH GEMMJIT_NVRTC
    while IFS= read -r -d : entry; do
        [ -z "$entry" ] || compgen -G "$entry/libnvrtc.so*" >/dev/null || kept=${kept:+$kept:}$entry
    done <<<"${LD_LIBRARY_PATH:-}:"
    export LD_LIBRARY_PATH=$kept
}

# Fills .toolkit/bin with Debian's nginx, unpacked only: installed, it begins to serve port 80 at once. Optional.
fetch_nginx() {
    local stage=$toolkit_dir/stage.$$
    mkdir -p "$stage" "$toolkit_dir/bin"
    if ! (cd "$stage" && apt-get -q download nginx && dpkg -x nginx_*.deb .) >/dev/null 2>&1 ||
        ! mv -f "$stage/usr/sbin/nginx" "$toolkit_dir/bin/nginx"; then
        note "nginx could not be fetched: the test that needs it will be skipped"
    fi
    rm -rf "$stage"
}

# nginx for tests/remote, which looks in these places.
setup_nginx() {
    if ! have nginx && [ ! -x /usr/sbin/nginx ] && [ ! -x "$toolkit_dir/bin/nginx" ]; then
        step "nginx: fetching Debian's package"
        with_toolkit_lock fetch_nginx
    fi
}

# Arguments: optional needs, as of missing_packages.
setup_all() {
    use_wheels=no
    case ${GEMMJIT_TOOLKIT:-} in
    '') find_toolkit || use_wheels=yes ;;
    wheel) use_wheels=yes ;;
    *) die "GEMMJIT_TOOLKIT=$GEMMJIT_TOOLKIT: the only value is 'wheel': pass over an installed toolkit" ;;
    esac
    if [ $use_wheels = yes ] && ! wheels_are_complete; then
        setup_packages "$@" pip
    else
        setup_packages "$@"
    fi
    if [ $use_wheels = yes ]; then
        with_toolkit_lock fetch_wheels
        toolkit_include=$toolkit_dir/include nvrtc_dir=$toolkit_dir/lib
        hide_other_nvrtc
        export GEMMJIT_NVRTC=$nvrtc_dir/libnvrtc.so.13 # for what is run from here on
    fi
    step "CUDA headers: $toolkit_include, NVRTC: $nvrtc_dir"
    if ! has_disassembler && has_pip; then
        step "nvdisasm: fetching $disassembler_wheel"
        with_toolkit_lock fetch_disassembler
    fi
}

# ---- build ----

# Where libraries go below the prefix: Meson finds that by itself only where dpkg-dev is installed. Prints an
# option, or nothing where the compiler knows no such directory.
libdir_option() {
    local triplet
    triplet=$(gcc -print-multiarch 2>/dev/null) || triplet=''
    [ -z "$triplet" ] || echo "-Dlibdir=lib/$triplet"
}

# What was fetched, for a command that is run from this build directory (tools/cli_build_tree.c): links, so that
# nothing that gets installed holds a path of this tree. Arguments: directory.
link_toolkit() {
    mkdir -p "$1/toolkit"
    ln -sfn "$toolkit_dir/bin" "$1/toolkit/bin"
    if [ "$use_wheels" = yes ]; then
        ln -sfn "$toolkit_dir/lib" "$1/toolkit/lib"
    else
        rm -f "$1/toolkit/lib"
    fi
}

# Configures a build directory, or brings an existing one to these options. Arguments: directory, options.
configure() {
    local directory=$1 libdir installed_nvrtc_dir=$nvrtc_dir
    shift
    [ "$use_wheels" = no ] || installed_nvrtc_dir=''
    libdir=$(libdir_option)
    meson_setup "$directory" "-Dtoolkit_include=$toolkit_include" "-Dnvrtc_dir=$installed_nvrtc_dir" \
        ${libdir:+"$libdir"} "$@" && link_toolkit "$directory"
}

# Arguments: directory, all options.
meson_setup() {
    local directory=$1 log=$1/configure.log stamp=$1/configure.options
    shift
    if [ -f "$directory/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$PWD $*" ]; then
        return # ninja itself configures again when a meson.build changed
    fi
    if [ -f "$directory/meson-private/coredata.dat" ]; then
        rm -f "$stamp"
        if meson setup --reconfigure "$directory" "$@" >"$log" 2>&1 </dev/null; then
            echo "$PWD $*" >"$stamp"
            return
        fi
        note "$directory cannot be brought to these options: starting it afresh"
        rm -rf "$directory"
    fi
    mkdir -p "$directory" || return 1
    if ! meson setup "$directory" "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        return 1
    fi
    echo "$PWD $*" >"$stamp"
}

# Arguments: directory, targets.
compile() {
    ninja -C "$@" --quiet </dev/null
}
