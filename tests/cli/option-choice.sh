$MSPROBE completion zhs
