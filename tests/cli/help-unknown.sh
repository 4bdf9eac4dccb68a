$MSPROBE help verison
