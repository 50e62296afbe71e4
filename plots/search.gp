# search.gp: the results of searches.  For each GPU and model it draws the best speedup so far by
# attempt and by money, a curve a mode, and below them the outcomes of the attempts of each round.
#
# counts[g] holds the modes that were tried as bits, and above them those whose money is
# known.  A panel has twelve blocks: five curves by attempt, five by money, the bars, and the
# places of the modes' names.
tall_curves = 365.0; tall_bars = 330.0
fixed_height = panels ? (tall_curves + tall_bars) * panels : 120
load plots."/style.gp"
if (panels == 0) exit
array mode[5] = ["best_of_n", "one_shot", "repair", "contrastive", "branching"]
array hue[5] = [black, sky, vermillion, green, blue]
array mark[5] = [6, 1, 5, 9, 7]
array fate[7] = ["significantly faster", "right, not significantly faster", "wrong, doubtful, failed to run", "gated", \
    "did not build", "repeats another", "no code"]
array shade[7] = [blue, sky, orange, purple, vermillion, 0xdddddd, 0x777777]
bit(g, b) = (counts[g] & (1 << (b - 1))) != 0
digit(g, b, m) = bit(g, b) ? sprintf(" %d", m) : ""
coarse = '"1" 1, "1.4" 1.4142, "2" 2, "2.8" 2.8284, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, ' . \
    '"128" 128, "256" 256'
fine = "1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2"
top(g) = 1 - (g - 1) * (tall_curves + tall_bars) / high
down(g, pixels) = top(g) - pixels / high
array by_count[5]; array by_money[5] # the first point of a curve that is marked: not all at one place
# Modes that find the same have the same curve: each is wider than those that are drawn over it.
drawn = ""
thick(w) = 2 + 2 * (words(drawn) - indexed(drawn, w))
indexed(list, w) = (strstrt(list, " " . w) + 1) / 2 # digits, each after a space
axes = 'set border 3 linecolor "#444444"; set tics nomirror out textcolor "#222222"; ' . \
    'set xtics nomirror; set ytics nomirror; set grid linecolor "#cccccc" linewidth 0.7'
set multiplot
do for [g = 1:panels] {
    base = (g - 1) * 12
    low = 0.95; best = 1.2; dearest = 0; most = 1
    tried = ""; priced = ""
    eval see_all
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
    drawn = ""; paid = "" # in this order: the control on top
    do for [w in tried] { drawn = " " . w . drawn }
    do for [w in priced] { paid = " " . w . paid }
    stats data index base+10 using 1 name "B" nooutput

    # The title, and what the curves are.
    set tmargin at screen down(g, 48); set bmargin at screen down(g, 70)
    set lmargin at screen 0.08; set rmargin at screen 0.98
    set xrange [0:1]; set yrange [0:1]
    unset border; unset tics; unset grid; unset xlabel; unset ylabel; unset title
    set label 9 titles[g] at screen 0.5, screen down(g, 16) center font ",11"
    set key default
    set key inside center center horizontal maxrows 1 Left reverse samplen 4 font ",10"
    plot NaN notitle, for [w in tried] keyentry with linespoints linewidth thick(w) \
        pointtype mark[int(w)] pointsize 1.4 * size linecolor rgb hue[int(w)] title mode[int(w)]
    unset label 9
    unset key

    # The curves.
    eval axes
    set tmargin at screen down(g, 84)
    set bmargin at screen down(g, tall_curves - 50)
    set logscale y 2
    set yrange [low / 1.05 : best * 1.1]
    eval "set ytics (" . (best < 2.1 ? fine : coarse) . ") scale 1"
    set xtics autofreq scale 1
    set lmargin at screen 0.08; set rmargin at screen 0.52
    set xrange [0:most * 1.03]
    set xlabel "attempts at a task (count)" offset 0,0.3
    set ylabel "best so far (speedup, geometric mean)"
    plot 1 with lines linewidth 1 linecolor rgb black notitle, \
        for [w in drawn] data index base+int(w)-1 using 1:2 with steps linewidth thick(w) \
            linecolor rgb hue[int(w)] notitle, \
        for [w in drawn] '' index base+int(w)-1 using 1:2 every 5::by_count[int(w)] with points \
            pointtype mark[int(w)] pointsize 1.4 * size linecolor rgb hue[int(w)] notitle
    set lmargin at screen 0.57; set rmargin at screen 0.98
    unset ylabel
    if (dearest == 0) { # there is no axis of money to draw along
        set label 7 priced eq tried ? "no call cost anything" : priced eq "" ? "prices are not known" : \
            "no call cost anything whose price is known" at graph 0.5,0.5 center font ",10"
        unset border; unset tics; unset grid; unset xlabel
        set xrange [0:1]
        plot NaN notitle
        unset label 7
        eval axes
    } else {
        set xrange [0:dearest * 1.03]
        set xlabel "spent on a task (USD)" offset 0,0.3
        plot 1 with lines linewidth 1 linecolor rgb black notitle, \
            for [w in paid] data index base+int(w)+4 using 1:2 with steps linewidth thick(w) \
                linecolor rgb hue[int(w)] notitle, \
            for [w in paid] '' index base+int(w)+4 using 1:2 every 5::by_money[int(w)] with points \
                pointtype mark[int(w)] pointsize 1.4 * size linecolor rgb hue[int(w)] notitle
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
    set key default
    set key at screen 0.745, screen down(g, tall_curves + 12) top left Left reverse \
        samplen 1.5 spacing 1.25 font ",9"
    set boxwidth 0.84
    set style fill solid 1 border rgb "white"
    share(k) = k < 4 ? 0 : share(k - 1) + column(k)
    level = 40; before = -B_max
    do for [k = 1:words(tried)] {
        stats data index base+11 every ::k-1::k-1 using 1 name "P" nooutput
        level = P_min - before < 0.17 * B_max && level == 40 ? 26 : 40 # two of one bar are too near
        before = P_min
        set label k mode[int(word(tried, k))] center font ",10" \
            at first P_min, screen down(g, tall_curves + tall_bars - level)
    }
    set label 8 "round" at screen 0.005, screen down(g, tall_curves + tall_bars - 58) left font ",9"
    plot for [f = 7:1:-1] data index base+10 using 1:(share(f + 3)):xtic(2) with boxes \
            linecolor rgb shade[f] title fate[f], \
        '' index base+10 using 1:(103):3 with labels font ",8" textcolor rgb "#444444" notitle
    do for [k = 1:8] { unset label k }
}
unset multiplot
