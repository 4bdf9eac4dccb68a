$MSPROBE version --threads=many
