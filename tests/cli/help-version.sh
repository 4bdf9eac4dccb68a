$MSPROBE help version
