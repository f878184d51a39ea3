# Sets up a node from inside its network namespace. Argument: what the names of its files in the plan begin with.
set -eu
while read -r setting value; do
    echo "$value" > "/proc/sys/net/ipv4/$setting"
done < "$1.settings"
ip -batch "$1.ip"
# Each line: an interface, and what is switched off in it.
while read -r interface features; do
    for feature in $features; do
        set -- "$@" "$feature" off
    done
    prefix=$1
    shift
    ethtool -K "$interface" "$@" > /dev/null 2>&1
    set -- "$prefix"
done < "$1.offload"
tc -batch "$1.tc"
