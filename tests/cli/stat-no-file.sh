# What is neither a file nor a directory.
mkfifo pipe
$MSPROBE stat pipe
