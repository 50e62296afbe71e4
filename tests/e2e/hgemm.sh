#!/bin/bash
# The kernels of hgemm: a choice for every shape, and ways to cut a product, emulated: eight of them and five edits
# that must be found, others for each commit; all with KERNELS=all.
# uses: build/task build/lib/define.a build/lib/task.a build/lib/base.a build/obj/harness/gpu/values.o
# shellcheck disable=SC2154  # out, root, scratch are lib.sh's
. tests/e2e/lib.sh

out=$scratch/out
# Ways to cut a product: M_N_K:WAY,TILE_M,TILE_N,SPLIT,PARTS,WALK[,TRANSPOSED].
cases='64_64_512:DIRECT,16,16,4,1,1 128_64_256:DIRECT,32,32,4,1,1 128_256_320:TOGETHER,128,256,1,1,8 256_128_192:TOGETHER,256,128,1,1,8
    64_256_320:TOGETHER,64,256,1,1,8 128_64_512:TOGETHER,64,64,4,1,8 64_128_1024:TOGETHER,64,128,8,2,8 128_64_512:TOGETHER,128,64,1,4,8
    1024_1024_128:APART,64,64,1,1,4 1088_2048_384:APART,64,256,1,1,4 512_256_640:PAIRED,128,256,1,1,8 256_256_320:PAIRED,64,128,1,1,8
    128_64_1024:PAIRED,64,64,1,1,8 256_128_1408:PAIRED,64,128,1,2,8 256_128_2048:PAIRED,128,128,1,4,8 128_256_512:TOGETHER,128,256,1,2,8
    64_128_1024:TOGETHER,64,128,2,4,8 512_256_640:PAIRED,256,128,1,1,8 128_64_1024:TOGETHER,64,64,1,16,8 192_256_320:TOGETHER,192,128,1,1,8
    192_128_512:TOGETHER,192,128,2,1,8 384_256_640:PAIRED,192,128,1,1,8 384_128_768:PAIRED,192,128,1,2,8 128_192_320:TOGETHER,128,96,1,1,8
    192_192_320:APART,64,96,1,1,8 256_192_1152:PAIRED,128,96,1,2,8 128_256_512:TOGETHER,128,128,1,4,8 256_256_640:TOGETHER,128,128,1,1,8
    128_512_320:APART,128,128,1,1,8 256_64_512:APART,64,64,1,1,8
    1088_1024_128:APART,128,64,1,1,4,true 128_256_320:TOGETHER,64,128,1,1,8,true 64_128_1024:TOGETHER,128,64,2,1,8,true
    128_256_1024:PAIRED,64,128,1,2,8,true 128_384_320:TOGETHER,192,128,1,1,8,true'
# shellcheck disable=SC2086  # a list
printf '%s\n' $cases | sed 's/\(.*\)_\(.*\)_\(.*\):/{\1, \2, \3, HALF_/; s/$/},/' > "$scratch/cases.h"
# Of all shapes of CUDA-L2's list, and of others, each has a choice that can be compiled; and so can be each way above,
# of which each commit has some emulated.
cat > "$scratch/list.cpp" << 'END'
#include <cstdio>
#include "half_choice.cuh"
using namespace kp;
static_assert(half_possible(half_choice(4096, 4096, 4096)), "");
int main() {
    const int sizes[] = {64, 128, 192, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384};
    int ways[4] = {}, splits = 0, parts = 0;
    for (int m : sizes)
        for (int n : sizes)
            for (int k : sizes) {
                const HalfChoice c = half_choice(m, n, k);
                half_each(m, n, k, [&](const HalfChoice &d) { ways[HALF_PAIRED] += d.way == HALF_PAIRED; });
                if (c.m != m || c.n != n || c.k != k || !half_possible(half_multiplied(c))) printf("%d %d %d\n", m, n, k);
                ways[c.way]++, splits += c.split > 1, parts += c.parts > 1;
            }
    const HalfChoice cases[] = {
#include "cases.h"
    };
    for (const HalfChoice &c : cases)
        if (!half_possible(half_multiplied(c)) || (c.m | c.n | c.k) % 64) printf("the way of %d %d %d\n", c.m, c.n, c.k);
    if (!ways[0] || !ways[1] || !ways[2] || !ways[3] || !splits || !parts) puts("a way that no shape takes");
}
END
for table in '' half_table_h100.cuh; do
    check "the choices of shapes are plain C++ ($table)" \
        g++ -std=c++17 -Wall -Wextra -Werror ${table:+-DKP_HALF_TABLE="\"$table\""} -Ioptimized/include -o "$scratch/list" "$scratch/list.cpp"
    check "and every shape, and every way that is tried, can be compiled ($table)" is "$("$scratch/list" 2>&1)" ''
done

# Of the last round every slab of every tile is somebody's, its pieces are counted, in the order of the depth, and have
# room, whatever is left.
{
    printf '#include <algorithm>\n#include <cstdio>\n#include <vector>\n#include "half_choice.cuh"\nusing namespace kp;\nusing std::max;\nusing std::min;\n'
    printf '#define __device__\n#define __forceinline__ inline\n'
    sed -n '/^\/\* A helper/,/^\/\* Where block/{ /^\/\* Where block/d; p }' optimized/include/half_last.cuh
    cat << 'END'
template <int SLABS_> struct Of { static constexpr int SLABS = SLABS_; };
template <int SLABS> static void all(int clusters) {
    for (int tiles = 1; tiles < clusters; tiles++) {
        const HalfLast last = half_last(clusters * 3 + tiles, SLABS, clusters);
        std::vector<std::vector<int>> of(tiles, std::vector<int>(SLABS, -1)), begin(tiles, std::vector<int>(last.parts + 2, -1));
        bool right = last.whole == clusters * 3 && last.tiles == tiles;
        for (int c = 0; c < clusters; c++)
            half_each_piece<Of<SLABS>>(last, c, [&](int tile, int from, int to, int piece) {
                right &= from < to && piece < last.parts + 2 && begin[tile][piece] == -1;
                begin[tile][piece] = from;
                for (int k = from; k < to; k++) right &= of[tile][k] == -1, of[tile][k] = piece;
            });
        for (int t = 0; t < tiles; t++) {
            const int pieces = half_pieces<Of<SLABS>>(last, t);
            for (int k = 0; k < SLABS; k++) right &= of[t][k] >= 0 && (k == 0 || of[t][k] >= of[t][k - 1]);
            for (int p = 0; p < last.parts + 2; p++) right &= (begin[t][p] >= 0) == (p < pieces);
        }
        if (!right) printf("%d tiles of %d slabs, %d clusters\n", tiles, SLABS, clusters);
    }
}
int main() {
    for (int clusters : {2, 3, 57, 66, 114, 132})
        all<1>(clusters), all<3>(clusters), all<16>(clusters), all<64>(clusters), all<100>(clusters), all<256>(clusters);
}
END
} > "$scratch/last.cpp"
check "the last round's pieces are plain C++" g++ -std=c++17 -Wall -Wextra -Werror -Ioptimized/include -o "$scratch/last" "$scratch/last.cpp"
check 'and are whole' is "$("$scratch/last" 2>&1 | head -3)" ''

if [ ! -e "$real_cuda/include/cuda_fp16.h" ] || ! echo '#include <sanitizer/asan_interface.h>' | g++ -fsanitize=address -E -x c++ - > /dev/null 2>&1; then
    skip 'the kernels of hgemm' 'no headers of CUDA, or no AddressSanitizer'
    exit
fi
unset SANITIZE DISTRIBUTION KP_SMALL_MB KP_SMALL_GFLOP
export CUDA_HOME=$real_cuda KP_EMULATE_SECONDS=100
mkdir -p "$scratch/hgemm" "$scratch/sm_90a"

# emulate M_N_K KERNEL.cu
emulate() {
    build/task expand tasks/hgemm/template.json "hgemm_$1" > "$scratch/hgemm/hgemm_$1.json"
    tests/emulate --task "$scratch/hgemm/hgemm_$1.json" "$2" > "$out" 2>&1
}
# edited SED - half_product.cuh, what it is made of and what chooses it, as one text.
edited() { cat optimized/include/half_{tile,parts,last,product,gemm}.cuh | grep -v '^#include "half_\(tile\|parts\|last\|product\)' | sed "$1"; }
# way M_N_K WAY,TILE_M,TILE_N,SPLIT,PARTS,WALK [SED] - as it is cut so; SED edits half_product.cuh.
way() {
    { echo "#define KP_HALF_CHOICE kp::HALF_$2" && edited "${3-}" &&
        grep -v 'half_gemm.cuh"' optimized/sm_90a/hgemm.cu; } > "$scratch/sm_90a/way.cu"
    emulate "$1" "$scratch/sm_90a/way.cu"
}
for shape in 64_64_64 256_64_512 128_256_64; do
    check "hgemm_$shape is right" emulate "$shape" optimized/sm_90a/hgemm.cu
done
# some N WORD... - N of them, others for each commit; all with KERNELS=all.
some() { if [ "${KERNELS-}" = all ]; then printf '%s\n' "${@:2}"; else shuffled "${@:2}" | head -n "$1"; fi; }
# shellcheck disable=SC2086  # a list
for case in $(some 8 $cases); do
    check "a product of ${case%:*} that is cut as ${case#*:} is right" way "${case%:*}" "${case#*:}"
done
# Two clusters take turns with all tiles, of which the last rows reach beyond the matrix.
few='s|processors / T::SHARE|2|'
for case in 768_384_128:PAIRED,128,64,1,1,8 1088_384_320:PAIRED,128,128,1,1,8 1152_384_320:PAIRED,128,192,1,1,8 1152_512_320:PAIRED,128,256,1,1,8 \
    1088_384_320:TOGETHER,128,128,1,1,8 1152_512_320:TOGETHER,128,256,1,1,8; do
    check "a product of ${case%:*} that is cut as ${case#*:}, by two clusters, is right" way "${case%:*}" "${case#*:}" "$few"
done
# Clusters share the tiles of the last round, and stay in step: 13 tiles by 4, 5, 6 and 8 clusters, 5 by 3.
shared() { echo "s|processors / T::SHARE|$1|; s/half_shares_last(C)/true/; s/half_in_step(C)/true/"; }
for case in 1600_64_704:TOGETHER,128,64,1,1,8:4 1600_64_704:TOGETHER,128,64,1,1,8:8 3264_64_704:PAIRED,128,64,1,1,8:5 3264_64_704:PAIRED,128,64,1,1,8:6 \
    1280_256_704:PAIRED,128,256,1,1,8:3; do
    IFS=: read -r shape cut clusters <<< "$case"
    check "a product of $shape that is cut as $cut, whose last round $clusters clusters share, is right" way "$shape" "$cut" "$(shared "$clusters")"
done
check 'a portable product straight from memory is right' emulate 128_64_256 optimized/portable/hgemm.cu
check 'so is one of tiles' emulate 64_1088_576 optimized/portable/hgemm.cu

# wrong WHAT M_N_K WAY SED [MORE] - so edited it is found to be wrong, if it is this edit's turn.
edit=0 turns=$(some 5 {1..19})
wrong() {
    grep -qx $((++edit)) <<< "$turns" || return 0
    check "$1: the edit is made" not cmp -s <(edited "$4") <(edited '')
    way "$2" "$3" "$4; ${5-}"
    check "$1 is found" grep -qE 'wrong|deadlock|too many|without a wait|has left|AddressSanitizer' "$out"
}
wrong 'a fetcher that does not wait for an empty stage' 128_256_512 TOGETHER,128,256,1,1,8 's/bar_wait(ring.empty(), ring.parity ^ 1);//'
wrong 'a stage that is given back too early' 128_256_512 TOGETHER,128,256,1,1,8 's/wgmma_wait<1>/wgmma_wait<2>/'
wrong 'a cluster whose sums are read too early' 128_64_512 TOGETHER,64,64,4,1,8 's/sent_wait(base + T::SENT);/(void)0;/'
wrong 'a warpgroup that does not wait for its turn' 1088_2048_384 APART,64,256,1,1,4 '/group + turn > 0/d'
wrong 'a part that is left out' 64_64_512 TOGETHER,64,64,1,4,8 's/int p = 0; p < T::PARTS/int p = 1; p < T::PARTS/'
wrong 'a part that is left in scratch and added from there' 64_64_512 TOGETHER,64,64,1,4,8 's/own && p == work.part ? own/false ? own/'
wrong 'a part of clusters that is left out' 64_128_1024 TOGETHER,64,128,2,4,8 's/int p = 0; p < T::PARTS/int p = 1; p < T::PARTS/'
wrong 'a block that adds what is sent in place of its own' 128_64_512 TOGETHER,64,64,4,1,8 's/s == share.sharer ? own/false ? own/'
wrong 'a half of B in the place of the other' 512_256_640 PAIRED,128,256,1,1,8 's/work.column(tile) + row, depth/work.column(tile), depth/'
wrong 'a block that does not share B' 512_256_640 PAIRED,128,256,1,1,8 's/copy_box<SHARE>/copy_box<1>/'
wrong 'a box that is written before the copy engine has read it' 1088_384_320 PAIRED,128,128,1,1,8 's/T::ROOMS - 1/T::ROOMS/' "$few"
wrong 'a block that gives back to one that has not started' 512_256_640 PAIRED,128,256,1,1,8 's/if (!met) cluster_wait();//'
wrong 'a block that fetches for one that has not started' 512_256_640 PAIRED,128,256,1,1,8 's/^        cluster_wait();$//'
wrong 'a block that leaves before all is given back' 512_256_640 PAIRED,128,256,1,1,8 's/if (T::SHARE > 1) ring.wait_all();//'
wrong 'a warp that ends before its boxes are read' 512_256_320 PAIRED,128,128,1,1,8 's/copies_out_wait<0>()/(void)0/'
wrong 'a piece that is left out' 1600_64_704 TOGETHER,128,64,1,1,8 's/int piece = 0; piece < pieces/int piece = 1; piece < pieces/' "$(shared 4)"
wrong 'a helper that begins where another does' 1600_64_704 TOGETHER,128,64,1,1,8 's/max(begin - first, 0)/0/' "$(shared 8)"
wrong 'a block that waits at its last step' 1600_64_704 TOGETHER,128,64,1,1,8 's/step > 1 && step < steps/step > 1/' "$(shared 4)"
wrong 'rows of a transposed product that are left out' 128_256_320 TOGETHER,64,128,1,1,8,true 's/of_quad % 2 \* 8) =/0) =/'
