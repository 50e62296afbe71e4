#!/bin/bash
# Packages into a folder, without root.  Needs a Debian or Ubuntu and its archive.
# shellcheck disable=SC2016,SC2154  # what is quoted is for another shell; out is lib.sh's
. tests/e2e/lib.sh

tree
prefix=$scratch/empty/prefix
if mk deps PREFIX="$prefix"; then
    for file in include/cjson/cJSON.h include/sha2.h include/seccomp.h include/cmocka.h "include/$(uname -m)-linux-gnu/curl/curl.h" bin/jq bin/gnuplot; do
        check "make deps brings $file" [ -e "$prefix/usr/$file" ]
    done
    # Carried elsewhere, it serves there without the libraries of this machine.
    carried=$scratch/empty/carried
    mv "$prefix" "$carried"
    check 'its jq runs' is "$("$carried/usr/bin/jq" -n 1+1)" 2
    check 'its gnuplot runs' "$carried/usr/bin/gnuplot" --version
    echo '#include <cjson/cJSON.h>
    #include <curl/curl.h>
    #include <sha2.h>
    int main(void) { char hex[65]; return !cJSON_Version() || !curl_version() || !SHA256Data((const unsigned char *)"", 0, hex); }' > probe.c
    make -s PREFIX="$carried" print-DEPS_FLAGS print-CURL_LIBS > "$out"
    # shellcheck disable=SC2046  # flags
    set -- $(sed 's/^[A-Z_]* = //' "$out")
    check 'its libraries link' gcc probe.c -o probe "$@"
    check 'and load' ./probe
    ldd ./probe > libraries
    check 'libcurl is that of the folder' grep -q "libcurl\.so.* => $carried/" libraries
    others=$(awk -v folder="$carried/" '/=>/ && index($3, folder) != 1 && $1 !~ /^lib(c|m|dl|rt|pthread|resolv|gcc_s)\.so/' libraries)
    check 'and so is all that it loads' is "$others" ''
    check "what has to be the system's own is not there" is "$(find "$carried" -name 'libc.so*' -o -name 'ld-linux*' -o -name 'libstdc++*' -o -name 'libgcc_s*')" ''
else
    skip 'make deps' "$(grep -m1 '^deps:' "$out")"
fi
mk deps PREFIX=/proc/no/such
check 'a PREFIX that cannot be written is one line' is "$(grep -c '^deps: cannot write /proc/no/such: choose another' "$out") $(grep -c . "$out")" '1 3'
mk deps PREFIX=
check 'so is an empty one' is "$(grep -c '^deps: PREFIX is empty: ' "$out") $(grep -c . "$out")" '1 3'

# Without the packages: reproduce goes as far as it can, the others say what to do.
tree
PATH=$PWD/bin:$PATH
printf '#!/bin/sh\nexit 1\n' | tee bin/sudo bin/apt-get > /dev/null
chmod +x bin/sudo bin/apt-get
sed -i 's|^command -v gnuplot.*|lacks gnuplot-nox|' make/detect
mk reproduce
check 'without gnuplot, and no way to install it, reproduce succeeds' [ $? = 0 ]
check 'says so in one line' lines 1 '^deps: cannot install here: have installed: gnuplot-nox'
check 'and records' [ -e results/h200/l1_019_relu.json ]
printf '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' > bin/sudo
printf '#!/bin/sh\necho "$*" >> apt.log\n' > bin/apt-get
mk reproduce
check 'where it may, it installs by apt' grep -q 'install -y --no-install-recommends gnuplot-nox$' apt.log
sed -i 's|^lacks gnuplot-nox|lacks libcjson-dev|; ' make/detect
sed -i 's|/usr/include/cjson/cJSON.h|/nowhere/cJSON.h|' make/detect
sed -i 's|"/usr/$(witness "$1")"|"/nowhere/$(witness "$1")"|' make/deps
PREFIX=deps # an empty one
touch harness/compile/gate_main.c
mk time
check 'without cJSON nothing can be built' [ $? != 0 ]
check 'which is said in one line' lines 1 '^deps: libcjson-dev is missing'
