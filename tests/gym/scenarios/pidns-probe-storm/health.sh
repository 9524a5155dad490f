#!/bin/sh
# The health check of the container: is each part of the service there?
mount -t proc proc /proc
probe() {
    pgrep -x "$1" > /dev/null || return 1
    test "$(cat /proc/1/comm)" = sh && echo ok
}

while :; do
    for part in gateway worker cache; do
        probe "$part" > /dev/null
        date +%s > /dev/null
    done
    sleep 0.01
done
