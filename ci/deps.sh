#!/bin/sh
# Installs the Debian or Ubuntu packages ddpbench needs. Usage: ci/deps.sh demo|check|readers [--list]
# demo: the packages to build, measure and train. check: also those that tests and lint need. readers:
# only those that `make readers` needs in addition.
# Asks apt only for missing packages, updates its lists only when they lack a package, and uses sudo
# when not root. On other distributions it prints the list and exits with 69. Tests set OS_RELEASE.
set -eu

demo="gcc libc6-dev make libcjson-dev zlib1g-dev libopenblas0-serial dataset-fashion-mnist"
tests="g++ libbenchmark-dev git openmpi-bin libopenmpi-dev mpich libmpich-dev libucx-dev libcmocka-dev bats perl \
parallel python3-jsonschema python3-numpy jq mandoc pkg-config procps util-linux"
readers="libbenchmark-tools python3-scipy python3-junitparser python3-pandas" # compare.py imports scipy
# Some releases lack these packages; the tests that need them are then skipped with a message.
extras="spin python3-yaml clang-format-14 clang-tidy-14 cppcheck shellcheck libsimgrid-dev libgloo-dev iproute2"

case ${1:-} in
demo) wanted=$demo extras= ;;
check) wanted="$demo $tests" ;;
readers) wanted=$readers extras= ;;
*)
    echo "usage: ci/deps.sh demo|check|readers [--list]" >&2
    exit 64
    ;;
esac
if [ "${2:-}" = --list ]; then
    echo "$wanted" $extras
    exit 0
fi

os_release=${OS_RELEASE:-/etc/os-release}
family=$(sed -n 's/^ID\(_LIKE\)\{0,1\}=//p' "$os_release" 2>/dev/null | tr -d '"' | tr '\n' ' ')
case " $family " in
*" debian "* | *" ubuntu "*) ;;
*)
    echo "deps: not Debian or Ubuntu; install the software of these packages, then leave out 'deps':" >&2
    echo "$wanted" $extras | tr ' ' '\n' >&2
    exit 69
    ;;
esac

missing_of() { # PACKAGE...: prints the packages that are not installed
    for package in "$@"; do
        state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || printf ' %s' "$package"
    done
}
# shellcheck disable=SC2086 # lists of words, here and below
missing=$(missing_of $wanted)
# shellcheck disable=SC2086
missing_extras=$(missing_of $extras)
if [ -z "$missing$missing_extras" ]; then
    echo "deps: all packages for '$1' are installed"
    exit 0
fi
echo "deps: installing$missing$missing_extras"

sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "deps: not root and no sudo here; as root: apt-get install$missing$missing_extras" >&2
        exit 77
    }
    sudo=sudo
fi
apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null
}
updated=
update() { # once
    [ -z "$updated" ] && updated=yes && apt update
}
# Updates the lists if a dry run shows that they lack a package, or if a download fails.
install() { # PACKAGE...
    apt-get -s -qq install --no-install-recommends "$@" >/dev/null 2>&1 || update || return 1
    apt install --no-install-recommends "$@" || { update && apt install --no-install-recommends "$@"; }
}

# shellcheck disable=SC2086
[ -z "$missing" ] || install $missing
for package in $missing_extras; do
    install "$package" || echo "deps: going without $package" >&2
done
