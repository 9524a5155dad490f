#!/bin/sh
run_job() {
  while :; do
    until mkdir "$1/totals.lock" 2>/dev/null; do sleep 0.02; done
    sleep 0.5
    rmdir "$1/totals.lock"
  done
}

for n in 1 2 3 4; do run_job "$1" & done
wait
