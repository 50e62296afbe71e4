# beside.gp: speedups of a family of products over the fastest library call, sorted: the headline's, in
# other modes, and of CUDA-L2's kernels; a panel a GPU and family.  counts[g] holds which curves
# it has as bits; the first line of each is its name, with how many shapes and their geometric mean.
fixed_height = panels ? 420 * panels : 120
load plots."/style.gp"
if (panels == 0) exit
array hue[6] = [orange, vermillion, blue, sky, green, black]
array thick[6] = [2, 2, 2.5, 1.5, 1.5, 3]
array dashes[6] = [1, 1, 1, 2, 2, 1]
curves(bits) = bits ? (bits & 1) + curves(bits / 2) : 0
has(bits, k) = (bits >> k) & 1
set xrange [0:100]
set xtics 10
set logscale y
set xlabel "shapes, slowest first (%); as published: over the faster of cuBLASLt's auto-tuned calls"
set ylabel "speedup over the fastest library call (times)"
set key top left Left reverse samplen 3 opaque
set lmargin 9
set rmargin 2
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb black linewidth 1
set multiplot layout panels,1
first = 0
do for [g = 1:panels] {
    kinds = ""
    do for [k = 0:5] { if (has(counts[g], k)) { kinds = kinds.sprintf("%d ", k + 1) } }
    n = words(kinds)
    set title titles[g] font ",11"
    set yrange [0.2:4]
    set ytics (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.5, 2, 3, 4)
    plot for [i = 1:n] data index first+i-1 using 1:2 with steps \
        linewidth thick[int(word(kinds, i))] dashtype dashes[int(word(kinds, i))] \
        linecolor rgb hue[int(word(kinds, i))] title columnheader(1)
    first = first + n
}
unset multiplot
