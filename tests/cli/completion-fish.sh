# What fish offers for beginnings of command lines.
command -v fish >/dev/null || { echo "no fish here"; exit 77; }
$MSPROBE completion fish >msprobe.fish
fish -N -n msprobe.fish || exit
mkdir -p files && : >files/one.json
ask() { # words typed so far; fish asks the functions for the line that stands in its buffer
    echo "$1: $(fish -N -c "source msprobe.fish; complete -C'$1'" 2>&1 | cut -f1 | sort | head -6 | tr '\n' ' ')"
}
ask 'msprobe gr'
ask 'msprobe stat --fo'
ask 'msprobe stat --format '
ask 'msprobe compare -t'
ask 'msprobe completion '
ask 'msprobe help wh'
ask 'msprobe stat files/o'
