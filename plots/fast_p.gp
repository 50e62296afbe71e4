# fast_p.gp: the share of cells that are correct and more than p times as fast as their
# baseline, against p; a panel a GPU, a curve a suite and one for all.
fixed_height = panels ? 330 * panels : 120
load plots."/style.gp"
if (panels == 0) exit
array hue[7] = [orange, sky, green, blue, vermillion, purple, grey]
set xrange [0:4]
set yrange [0:104]
set xlabel "p (times as fast as the baseline)"
set ylabel "correct and faster than p (% of cells)"
set ytics 20
set xtics 0.5
set key at graph 0.01, 0.8 left top Left reverse samplen 4 # where curves rarely are
set lmargin 9
set rmargin 2
set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead linecolor rgb black linewidth 1.5
set multiplot layout panels,1
first = 0
do for [g = 1:panels] {
    n = counts[g]
    set title titles[g] font ",11"
    plot for [i = 1:n-1] data index first+i-1 using 1:2 with steps linewidth 2 \
            dashtype 1+(i-1)%5 linecolor rgb hue[(i-1) % 7 + 1] title suites[i], \
        data index first+n-1 using 1:2 with steps linewidth 3 linecolor rgb black title "all"
    first = first + n
}
unset multiplot
