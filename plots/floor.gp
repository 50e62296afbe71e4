# floor.gp: how much of the machine a kernel uses: the time that its compulsory bytes and
# flops take at the measured peaks, over its own time; its baseline beside it; a panel a GPU.
load plots."/style.gp"
if (panels == 0) exit
array meaning[2] = ["kernel", "baseline"]
array mark[2] = [7, 4]
array hue[2] = [blue, orange]
set multiplot
do for [g = 1:panels] {
    top = 105
    eval see_all
    if (counts[g] > 0) {
        stats data index g-1 using 3 name "K" nooutput
        stats data index g-1 using 4 name "B" nooutput
        top = (K_max > B_max ? K_max : B_max)
        top = (top > 100 ? top : 100) * 1.05
    }
    rows = counts[g] > 0 ? counts[g] : 1
    set title titles[g] font ",11"
    eval place
    set arrow 1 nohead linecolor rgb black linewidth 1.5
    if (named(g)) {
        set xrange [0:top]
        set yrange [0.3:rows + 0.7]
        set xtics 20
        set ytics font ",9" scale 0.3
        set xlabel "share of the measured peak (% of floor)"
        unset ylabel
        set key bottom right Right samplen 1 opaque
        set arrow 1 from 100, graph 0 to 100, graph 1
        plot data index g-1 using (NaN):1:ytic(2) notitle, for [k = 1:2] '' index g-1 \
            using 2+k:1 with points pointtype mark[k] pointsize 0.8*size linecolor rgb hue[k] title meaning[k]
    } else {
        eval suite_axis
        set yrange [0:top]
        set ytics 20 font ",10" scale 1
        set xlabel "correct cells of each suite, furthest from the floor first (at most 200 of a suite)"
        set ylabel "share of the measured peak (% of floor)"
        eval key_below
        set arrow 1 from graph 0, first 100 to graph 1, first 100
        plot for [k = 2:1:-1] data index g-1 using 5:(shown($6, column(2+k))) \
            with points pointtype mark[k] pointsize 0.4*size linecolor rgb hue[k] title meaning[k]
    }
}
unset multiplot
