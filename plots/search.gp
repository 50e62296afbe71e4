# search.gp: what searches came to; for each GPU the best speedup so far by attempt and by
# money, a curve a mode, and below them what became of the attempts of each round.
#
# counts[g] holds the modes that were tried as bits, and above them those whose money is
# known.  A GPU has twelve blocks: five curves by attempt, five by money, the bars, and the
# places of the modes' names.
tall_curves = 340.0; tall_bars = 330.0
fixed_height = panels ? (tall_curves + tall_bars) * panels : 120
load plots."/style.gp"
if (panels == 0) exit
array mode[5] = ["best_of_n", "one_shot", "repair", "contrastive", "branching"]
array hue[5] = [black, sky, vermillion, green, blue]
array dash[5] = [2, 4, 1, 5, 1]
array mark[5] = [6, 1, 5, 9, 7]
array fate[7] = ["faster", "right, not surely faster", "wrong, crashed or timed out", "gated", \
    "did not build", "repeats another", "no code"]
array shade[7] = [blue, sky, orange, purple, vermillion, 0xdddddd, 0x777777]
bit(g, b) = (counts[g] & (1 << (b - 1))) != 0
digit(g, b, m) = bit(g, b) ? sprintf(" %d", m) : ""
steps = '"1/4" 0.25, "1/2" 0.5, "0.7" 0.7071, "1" 1, "1.4" 1.4142, "2" 2, "2.8" 2.8284, "4" 4, ' . \
    '"8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256'
top(g) = 1 - (g - 1) * (tall_curves + tall_bars) / high
down(g, pixels) = top(g) - pixels / high
array by_count[5]; array by_money[5] # the first point of a curve that is marked: not all at one place
set multiplot
do for [g = 1:panels] {
    base = (g - 1) * 12
    low = 0.95; best = 1.2; dearest = 0; most = 1
    tried = ""; priced = ""
    set xrange [*:*]; set yrange [*:*]; unset logscale # they would narrow what stats sees
    do for [m = 1:5] { tried = tried . digit(g, m, m); priced = priced . digit(g, m + 5, m) }
    do for [w in tried] {
        stats data index base+int(w)-1 using 1 name "A" nooutput
        stats data index base+int(w)-1 using 2 name "S" nooutput
        low = (S_min < low ? S_min : low)
        best = (S_max > best ? S_max : best)
        most = (A_max > most ? A_max : most)
        by_count[int(w)] = (A_records > int(w) ? int(w) : 0)
    }
    do for [w in priced] {
        stats data index base+int(w)+4 using 1 name "D" nooutput
        dearest = (D_max > dearest ? D_max : dearest)
        by_money[int(w)] = (D_records > int(w) ? int(w) : 0)
    }
    stats data index base+10 using 1 name "B" nooutput

    # The curves.
    set tmargin at screen down(g, 58)
    set bmargin at screen down(g, tall_curves - 50)
    set logscale y 2
    set yrange [low / 1.05 : best * 1.1]
    eval "set ytics (" . steps . ") scale 1"
    set xtics autofreq scale 1
    set key default
    set key top left Left reverse samplen 3.5 spacing 1.1 opaque
    set label 9 titles[g] at screen 0.5, screen down(g, 16) center font ",11"
    set lmargin at screen 0.08; set rmargin at screen 0.52
    set xrange [0:most * 1.03]
    set xlabel "attempts at a task (count)" offset 0,0.3
    set ylabel "best so far (speedup, geometric mean)"
    unset title
    plot 1 with lines linewidth 1 linecolor rgb black notitle, \
        for [w in tried] data index base+int(w)-1 using 1:2 with steps linewidth 2.5 \
            dashtype dash[int(w)] linecolor rgb hue[int(w)] notitle, \
        for [w in tried] '' index base+int(w)-1 using 1:2 every 5::by_count[int(w)] with points \
            pointtype mark[int(w)] pointsize size linecolor rgb hue[int(w)] notitle, \
        for [w in tried] keyentry with linespoints linewidth 2.5 dashtype dash[int(w)] \
            pointtype mark[int(w)] pointsize size linecolor rgb hue[int(w)] title mode[int(w)]
    unset label 9
    set lmargin at screen 0.57; set rmargin at screen 0.98
    set xrange [0:dearest > 0 ? dearest * 1.03 : 1]
    set xlabel "spent on a task (USD)" offset 0,0.3
    unset ylabel
    if (priced eq "") {
        set label 7 "prices are not known" at graph 0.5,0.5 center font ",10"
        plot 1 with lines linewidth 1 linecolor rgb black notitle
        unset label 7
    } else {
        plot 1 with lines linewidth 1 linecolor rgb black notitle, \
            for [w in priced] data index base+int(w)+4 using 1:2 with steps linewidth 2.5 \
                dashtype dash[int(w)] linecolor rgb hue[int(w)] notitle, \
            for [w in priced] '' index base+int(w)+4 using 1:2 every 5::by_money[int(w)] with points \
                pointtype mark[int(w)] pointsize size linecolor rgb hue[int(w)] notitle
    }

    # The bars: column 4 and on hold shares, the best outcome at the bottom.
    set tmargin at screen down(g, tall_curves + 12)
    set bmargin at screen down(g, tall_curves + tall_bars - 68)
    set lmargin at screen 0.08; set rmargin at screen 0.73
    unset logscale
    set yrange [0:107]
    set ytics 25 scale 1
    set xrange [0.3:B_max + 0.7]
    set xtics scale 0 font ",9"
    set xlabel " "
    set ylabel "attempts of a round (%)"
    set key at screen 0.745, screen down(g, tall_curves + 12) top left Left reverse \
        samplen 1.5 spacing 1.25 font ",9"
    set boxwidth 0.84
    set style fill solid 1 border rgb "white"
    share(k) = k < 4 ? 0 : share(k - 1) + column(k)
    do for [k = 1:words(tried)] {
        stats data index base+11 every ::k-1::k-1 using 1 name "P" nooutput
        set label k mode[int(word(tried, k))] center font ",10" \
            at first P_min, screen down(g, tall_curves + tall_bars - 40)
    }
    set label 8 "round" at screen 0.005, screen down(g, tall_curves + tall_bars - 58) left font ",9"
    plot for [f = 7:1:-1] data index base+10 using 1:(share(f + 3)):xtic(2) with boxes \
            linecolor rgb shade[f] title fate[f], \
        '' index base+10 using 1:(103):3 with labels font ",8" textcolor rgb "#444444" notitle
    do for [k = 1:8] { unset label k }
}
unset multiplot
