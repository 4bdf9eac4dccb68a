$MSPROBE version -v
