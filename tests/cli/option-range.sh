$MSPROBE version --threads 9999
