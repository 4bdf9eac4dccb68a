$MSPROBE version --stast
