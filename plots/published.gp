# published.gp: the speedups over eager PyTorch that were published for CUDA-L1; a panel a
# GPU.  Nothing here was measured by this suite.
fixed_height = 660
load plots."/style.gp"
if (panels == 0) exit
set logscale y
set yrange [0.8:900]
set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500) font ",9"
set xrange [0:255]
set xtics 50 font ",9"
unset key
fine(kind, value) = kind eq "-" ? value : NaN
half(kind, value) = kind eq "half" ? value : NaN
is_void(kind) = kind ne "-" && kind ne "half"
void(kind, value) = is_void(kind) ? value : NaN
# Names stand to the left of their points (some further out, see the data), or to the
# right where there is no room.
name(place, rank, value) = is_void(strcol(3)) && place eq (rank < 130 ? "right" : strcol(5)) \
    ? value : NaN
set multiplot layout 2,3 margins 0.085,0.985,0.105,0.85 spacing 0.06,0.17 \
    title "CUDA-L1 as published, not re-measured: speedup over eager PyTorch" font ",13"
do for [g = 1:panels] {
    set title titles[g] font ",9" offset 0,-0.5
    if (g > 3) { set xlabel "scored tasks, slowest first (count)" font ",9" } else { unset xlabel }
    if (g % 3 == 1) { set ylabel "speedup over eager (times)" font ",9" } else { unset ylabel }
    plot 1 with lines linecolor rgb black linewidth 1.5, \
        data index g-1 using 1:(fine(strcol(3), $2)) with points pointtype 7 pointsize 0.35*size \
            linecolor rgb blue, \
        '' index g-1 using 1:(half(strcol(3), $2)) with points pointtype 4 pointsize 0.8*size \
            linewidth 1.5 linecolor rgb orange, \
        '' index g-1 using 1:(void(strcol(3), $2)) with points pointtype 2 pointsize 0.9*size \
            linewidth 2 linecolor rgb vermillion, \
        '' index g-1 using 1:(name("0", $1, $2)):4 with labels right offset -0.9,0.1 \
            font ",8" textcolor rgb vermillion, \
        '' index g-1 using 1:(name("1", $1, $2)):4 with labels right offset -7.0,0.1 \
            font ",8" textcolor rgb vermillion, \
        '' index g-1 using 1:(name("right", $1, $2)):4 with labels left offset -0.5,0.9 \
            font ",8" textcolor rgb vermillion
}
unset title; unset border; unset tics; unset grid; unset xlabel; unset ylabel; unset logscale
set xrange [0:1]; set yrange [0:1]
set label 1 "as published" at 0.12,0.92 font ",10"
set label 2 "fp16 products in an fp32 task" at 0.12,0.80 font ",10"
set label 3 "known not to be a speedup\nof the task" at 0.12,0.68 font ",10"
set label 4 "Known from reading a sample of\nthe released code; listed in\nresults/published/\ncuda_l1_known_bad.csv.\n\nMeans are over all tasks; one that\nhas no score counts as 1." \
    at 0.02,0.5 font ",10"
$mark << EOD
0.05	0.92
0.05	0.80
0.05	0.68
EOD
plot $mark every ::0::0 with points pointtype 7 pointsize 0.5*size linecolor rgb blue, \
    $mark every ::1::1 with points pointtype 4 pointsize 0.9*size linewidth 1.5 linecolor rgb orange, \
    $mark every ::2::2 with points pointtype 2 pointsize 1*size linewidth 2 linecolor rgb vermillion
unset multiplot
