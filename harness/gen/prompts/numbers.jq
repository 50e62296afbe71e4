# numbers.jq: numbers as text.

def fix($d): if . < 0 then "-" + (-. | fix($d)) else (. * pow(10; $d) | round) as $n | ($n / pow(10; $d) | floor) as $i | ($n - $i * pow(10; $d) | tostring) as $f
    | if $d == 0 then "\($i)" else "\($i)." + ("0" * ($d - ($f | length)) // "") + $f end end;
# So many significant digits: as a number, and as printf's %g has them.
def round_to($d): if . == 0 then 0 else pow(10; $d - 1 - (fabs | log10 | floor)) as $unit | (. * $unit | round) / $unit end;
def g($d): if . == 0 then "0" elif . < 0 then "-" + (-. | g($d)) else round_to($d) as $x | ($x | log10 + 1e-12 | floor) as $e
    | if $e >= -4 and $e < $d then $x | tostring
      else "\($x / pow(10; $e) | round_to($d))e\(if $e < 0 then "-" else "+" end)\($e | fabs | if . < 10 then "0\(.)" else tostring end)" end end;
def us: fix(if . >= 100 then 0 elif . >= 10 then 1 else 2 end) + " us";
def finite($d): if type == "number" then g($d) else "not finite" end; # JSON has no NaN and no infinity
def bytes: {x: ., u: 0} | until(.x < 1024 or .u == 4; .x /= 1024 | .u += 1) | "\(.x | g(4)) \(["B", "KiB", "MiB", "GiB", "TiB"][.u])";
