# The same text both ways, and narrow terminals are respected.
$MSPROBE completion --help >a
$MSPROBE help completion
$MSPROBE help completion | cmp - a
COLUMNS=50 $MSPROBE help completion | awk 'length > 79 { print "too wide: " $0 }'
