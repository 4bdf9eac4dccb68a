$MSPROBE help
