$MSPROBE version --elephant
