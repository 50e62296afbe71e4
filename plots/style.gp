# style.gp: what the figures share.  Colours are Okabe and Ito's, told apart by
# colour-blind readers and in grey.
#
# Most figures stack their panels.  A panel with few cells names them, one a line.  A panel with
# many shows the distribution of each suite: its cells, sorted, side by side with other suites.
# Heights are in pixels.
named(g) = panels <= 2 && counts[g] <= 60
tall(g) = named(g) ? 150 + 16 * (counts[g] > 5 ? counts[g] : 5)   : 390
above(g) = g < 2 ? 0 : above(g - 1) + tall(g - 1)
wide = 860
high = exists("fixed_height") ? fixed_height : panels ? above(panels + 1) : 120

if (terminal eq "svg") {
    set terminal svg size wide,high font "sans-serif,10" fontscale 1.25 background "#ffffff" noenhanced
} else {
    set terminal pngcairo size wide,high font "Sans,10" background "#ffffff" noenhanced
}
size = terminal eq "svg" ? 0.85 : 1 # its points are larger
set output out
set encoding utf8
set datafile separator "\t"
black = 0x000000; grey = 0x999999; orange = 0xE69F00; sky = 0x56B4E9
green = 0x009E73; blue = 0x0072B2; vermillion = 0xD55E00; purple = 0xCC79A7
set border 3 linecolor "#444444"
set tics nomirror out textcolor "#222222"
set grid linecolor "#cccccc" linewidth 0.7
if (panels == 0) {
    set label 1 "no results are recorded yet" at graph 0.5,0.5 center
    unset border; unset tics; unset grid; unset key
    set xrange [0:1]; set yrange [0:1]
    plot NaN notitle
    exit
}

# Before a panel's numbers are read: stats passes over what lies outside of the ranges, which are
# still the last panel's.
see_all = "set xrange [*:*]; set yrange [*:*]; unset logscale"

# Margins of panel g of a stack: a title of two lines above, an axis below, and below the axis of a
# distribution the key.
place = "set tmargin at screen 1 - (above(g) + 58.0) / high; " . \
    "set bmargin at screen 1 - (above(g) + tall(g) - (named(g) ? 68.0 : 88.0)) / high; " . \
    "set rmargin at screen 0.98; set lmargin at screen named(g) ? 0.41 : 0.09"

# The axis of suites: each has the width 1.  Column `place` of the data fits it; at most 200 cells of
# a suite are drawn, as column `drawn` says (harness/report/plots.c).
suite_axis = 'set xrange [0:|suites|]; set xtics scale 0 offset 0,0.2 font ",10" (suites[1] 0.5); ' . \
    'do for [k = 2:|suites|] { set xtics add (suites[k] k - 0.5) }; ' . \
    'do for [k = 1:|suites|-1] { set arrow 10 + k from k, graph 0 to k, graph 1 nohead ' . \
    'linecolor rgb "#bbbbbb" linewidth 1 }; set grid noxtics'
key_below = "set key default; set key at screen 0.535, screen 1 - (above(g) + tall(g) - 24.0) / high " . \
    "center center horizontal maxrows 1 Left reverse samplen 1"
shown(drawn, value) = drawn == 1 ? value : NaN
