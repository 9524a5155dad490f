store() {
    echo "$1" >>"$log"
    sync "$log"
}

log=$1
n=0
while :; do
    n=$((n + 1))
    store "event $n"
done
