$MSPROBE version --debug jread:7
