# The first things people try do what they mean.
$MSPROBE --help >a && $MSPROBE -h >b && $MSPROBE help >c && cmp a b && cmp b c &&
    $MSPROBE --version >d && $MSPROBE version >e && cmp d e
