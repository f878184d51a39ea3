# Builds a lab, as the first process of a process namespace whose network namespace is the switch.
#
# Arguments: the lab's folder; `owner` or `down`; the program that runs the link emulators, or nothing. All else is data in
# the folder's `plan`, which is read and never run.
set -eu
FOLDER=$1 STAY=$2 CARRIER=$3
NS=$FOLDER/ns PLAN=$FOLDER/plan

# Private places for what programs leave behind: nothing of it outlives the lab, and two labs do not clash.
mount -t tmpfs lab "$NS"
mount -t tmpfs lab /dev/shm || true
mount -t proc proc /proc || true
cd "$NS"
mkdir tmp
cp "$PLAN/hosts" "$PLAN/hosts.openmpi" "$PLAN/hosts.mpich" "$PLAN/remote-shell" .
chmod +x remote-shell
mount --bind hosts /etc/hosts || true

in_node() { entered=$NS/$1.net; shift; nsenter --net="$entered" "$@"; }
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true
ip link set lo up
while read -r name <&3; do
    touch "$name.net" "$name.uts" "$name.ipc"
    unshare --net="$NS/$name.net" --uts="$NS/$name.uts" --ipc="$NS/$name.ipc" hostname "$name"
    in_node "$name" sh -c 'echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true'
done 3< "$PLAN/nodes"

ip -batch "$PLAN/switch.ip"
tc -batch "$PLAN/switch.tc"
while read -r port <&3; do
    ethtool -K "$port" tso off gso off gro off > /dev/null 2>&1
done 3< "$PLAN/switch.ports"
while read -r name <&3; do
    in_node "$name" sh "$FOLDER/node.sh" "$PLAN/$name"
done 3< "$PLAN/nodes"

# The process that carries frames says so when it hears them; if it ends before, nothing is read and the script fails.
if [ -n "$CARRIER" ]; then
    mkfifo cable.ready
    "$CARRIER" lab serve-cables "$PLAN/cable.toml" > cable.ready &
    read -r heard < cable.ready
fi

echo ready
case $STAY in
owner)
    # Until the standard input ends, which is when the lab's owner ends, in whatever way.
    exec > /dev/null 2>&1
    cat > /dev/null
    cd /
    umount -l "$NS"
    rm -rf "$FOLDER"
    ;;
down)
    exec < /dev/null > /dev/null 2>&1
    sleep infinity &
    wait
    ;;
esac
