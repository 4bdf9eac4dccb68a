$MSPROBE version
