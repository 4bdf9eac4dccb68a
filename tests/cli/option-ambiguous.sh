$MSPROBE version --t
