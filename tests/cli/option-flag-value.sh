$MSPROBE version --stats=yes
