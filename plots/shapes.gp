# shapes.gp: the speedup of families of products over the fastest library call, by M N (the nearest power of
# two) and K: the geometric mean of the shapes there; a panel a GPU and family.
each = 440
behind = 0.95 # a shape that is slower is marked
fixed_height = panels ? each * panels : 120
load plots."/style.gp"
if (panels == 0) exit
# White is 1, the full colour 1.25 and more, or 1 / 1.25 and less.
full = log(1.25)
depth(x) = abs(log(x)) > full ? 1 : abs(log(x)) / full
mixed(from, to, d) = int(from + (to - from) * d)
shade(x, hue) = 65536 * mixed(255, hue / 65536, depth(x)) + 256 * mixed(255, hue / 256 % 256, depth(x)) + mixed(255, hue % 256, depth(x))
colour(x) = shade(x, x > 1 ? blue : orange)
set style fill solid 1 noborder
set key off
unset grid
# Where no shape counts, the panel shows.
set object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 behind fillcolor rgb 0xe0e0e0 fillstyle solid noborder
set xtics 1 scale 0 font ",9"
set ytics scale 0 font ",9"
set xlabel "log2(M N), rounded\n".sprintf("speedup over the fastest library call; blue: faster, orange: slower; " \
    ."dot: a shape below %.2f; grey: no shape that counts", behind) font ",9"
set ylabel "K"
set lmargin 9
set rmargin 2
set multiplot layout panels,1
do for [g = 1:panels] {
    set title titles[g] font ",11"
    eval see_all
    stats data index g-1 using 1 name "A" nooutput
    stats data index g-1 using 2 name "K" nooutput
    set xrange [A_min - 0.5:A_max + 0.5]
    set yrange [0.5:K_max + 0.5]
    plot data index g-1 using 1:2:(0.48):(0.48):(colour($4)):ytic(3) with boxxyerror linecolor rgb variable, \
        '' index g-1 using 1:2:(sprintf("%.2f", $4)):($4 > 1 && depth($4) > 0.6 ? 0xffffff : 0x222222) \
            with labels font ",8" textcolor rgb variable, \
        '' index g-1 using ($1 + 0.38):($6 < behind ? $2 + 0.32 : NaN) with points pointtype 7 pointsize 0.5 linecolor rgb vermillion
}
unset multiplot
