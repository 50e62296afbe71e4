# speedup.gp: every correct cell's speedup with its 95 % interval, sorted; a panel a GPU.
load plots."/style.gp"
if (panels == 0) exit
array outcome[4] = ["faster", "even", "slower", "out"]
array meaning[4] = ["faster", "interval holds 1", "slower", "left out of the means"]
array mark[4] = [7, 5, 9, 6]
array hue[4] = [blue, black, vermillion, grey]
steps = '"1/16" 0.0625, "1/8" 0.125, "1/4" 0.25, "1/2" 0.5, "0.7" 0.7071, "1" 1, "1.4" 1.4142, ' . \
    '"2" 2, "2.8" 2.8284, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256'
set bars small
set multiplot
do for [g = 1:panels] {
    low = 0.6; top = 1.7
    if (counts[g] > 0) {
        stats data index g-1 using 3 name "S" nooutput
        low = (S_min < low ? S_min : low) / 1.15
        top = (S_max > top ? S_max : top) * 1.15
    }
    rows = counts[g] > 0 ? counts[g] : 1
    set title titles[g] font ",11"
    eval place
    unset logscale
    if (named(g)) {
        set xrange [low:top]
        set yrange [0.3:rows + 0.7]
        set logscale x 2
        eval "set xtics (" . steps . ")"
        set ytics font ",9" scale 0.3
        set xlabel "speedup over the baseline (times)"
        unset ylabel
        set key bottom right Right samplen 1 opaque
        set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb black linewidth 1.5
        plot data index g-1 using (NaN):1:ytic(2) notitle, \
            for [k = 1:4] '' index g-1 using (strcol(6) eq outcome[k] ? $3 : NaN):1:4:5 \
                with xerrorbars pointtype mark[k] pointsize 0.8*size linecolor rgb hue[k] title meaning[k]
    } else {
        set xrange [0.3:rows + 0.7]
        set yrange [low:top]
        set logscale y 2
        eval "set ytics (" . steps . ") font ',10' scale 1"
        set xtics autofreq
        set xlabel "correct cells, slowest first (count)"
        set ylabel "speedup over the baseline (times)"
        set key top left Left reverse samplen 1
        set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb black linewidth 1.5
        plot for [k = 1:4] data index g-1 using 1:(strcol(6) eq outcome[k] ? $3 : NaN):4:5 \
            with yerrorbars pointtype mark[k] pointsize 0.6*size linecolor rgb hue[k] title meaning[k]
    }
}
unset multiplot
