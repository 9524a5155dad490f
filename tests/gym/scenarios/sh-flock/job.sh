#!/bin/bash
# each round works 0.4 s under the lock
exec 9>"$1"
while true; do
    flock 9
    sleep 0.4
    flock -u 9
    sleep 0.05
done
