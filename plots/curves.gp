# curves.gp: speedups of a family of products, sorted: over each of the libraries' calls, and over the fastest by
# size; two panels a GPU and family.  counts[g] is how many curves a panel has; the first line of each is its
# name, with how many shapes and their geometric mean.
fixed_height = panels ? 380 * panels / 2 : 120
load plots."/style.gp"
if (panels == 0) exit
array hue[7] = [sky, blue, green, purple, orange, vermillion, black]
set xrange [0:100]
set xtics 20
set logscale y
set yrange [0.7:2]
set ytics (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.7, 2)
set xlabel "shapes, slowest first (%)"
set ylabel "speedup (times)" offset 1
set key top left Left reverse samplen 2 opaque font ",8"
set lmargin 9
set rmargin 4
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb black linewidth 1
set multiplot layout panels/2,2
last(g, i) = int(g) % 2 && i == int(counts[g]) # that over the fastest call
first = 0
do for [g = 1:panels] {
    set title titles[g] font ",10"
    n = int(counts[g])
    plot for [i = 1:n] data index first+i-1 using 1:2 with steps linewidth (last(g, i) ? 2.5 : 1.5) \
        linecolor rgb hue[last(g, i) ? 7 : i] title columnheader(1)
    first = first + n
}
unset multiplot
