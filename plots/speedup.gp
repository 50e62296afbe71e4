# speedup.gp: the speedup of correct cells, over the baseline and over PyTorch; a panel a GPU.  A panel
# with few cells names them and shows where other boards are predicted to fall; a panel with many shows
# the distribution of each suite.
load plots."/style.gp"
if (panels == 0) exit
array outcome[4] = ["faster", "even", "slower", "out"]
array meaning[4] = ["over the baseline: faster", "interval holds 1", "slower", "left out of the means"]
array mark[4] = [7, 5, 9, 6]
array hue[4] = [blue, black, vermillion, grey]
steps = '"1/16" 0.0625, "1/8" 0.125, "1/4" 0.25, "1/2" 0.5, "0.7" 0.7071, "1" 1, "1.4" 1.4142, ' . \
    '"2" 2, "2.8" 2.8284, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256'
set bars small
set multiplot
do for [g = 1:panels] {
    low = 0.6; top = 1.7; has_pytorch = 0 # whether a cell of this panel has PyTorch's time
    eval see_all
    if (counts[g] > 0) {
        stats data index g-1 using 3 name "S" nooutput
        stats data index g-1 using (strcol(9) eq "NaN" ? $3 : $9) name "T" nooutput
        stats data index g-1 using (strcol(9) eq "NaN" ? 0 : 1) name "N" nooutput
        has_pytorch = N_max > 0
        low = (S_min < T_min ? S_min : T_min); low = (low < 0.6 ? low : 0.6) / 1.15
        top = (S_max > T_max ? S_max : T_max); top = (top > 1.7 ? top : 1.7) * 1.15
    }
    rows = counts[g] > 0 ? counts[g] : 1
    set title titles[g] font ",10" # more would not fit
    eval place
    if (named(g)) {
        set xrange [low:top]
        set yrange [0.3:rows + 0.7]
        set logscale x 2
        eval "set xtics (" . steps . ")"
        set ytics font ",9" scale 0.3
        set xlabel "speedup (times)"
        unset ylabel
        set key bottom right Right samplen 1 opaque
        set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb black linewidth 1.5
        plot data index g-1 using (NaN):1:ytic(2) notitle, \
            '' index g-1 using (has_pytorch ? $9 : NaN):1 with points pointtype 4 pointsize 0.8*size \
                linecolor rgb orange title (has_pytorch ? "over PyTorch as it comes" : ""), \
            for [k = 1:4] '' index g-1 using (strcol(6) eq outcome[k] ? $3 : NaN):1:4:5 \
                with xerrorbars pointtype mark[k] pointsize 0.8*size linecolor rgb hue[k] title meaning[k]
    } else {
        eval suite_axis
        set yrange [low:top]
        set logscale y 2
        eval "set ytics (" . steps . ") font ',10' scale 1"
        set xlabel "correct cells of each suite, slowest first (at most 200 of a suite)"
        set ylabel "speedup (times)"
        eval key_below
        set key maxrows 2
        set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb black linewidth 1.5
        plot data index g-1 using 10:(has_pytorch ? shown($11, $9) : NaN) with points pointtype 4 \
                pointsize 0.4*size linecolor rgb orange title (has_pytorch ? "over PyTorch as it comes" : ""), \
            for [k = 1:4] data index g-1 using 7:(strcol(6) eq outcome[k] ? shown($8, $3) : NaN) \
            with points pointtype mark[k] pointsize 0.45*size linecolor rgb hue[k] title meaning[k]
    }
}
unset multiplot
