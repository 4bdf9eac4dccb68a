$MSPROBE version --threads
