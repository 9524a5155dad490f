#!/bin/bash
# Restart=always
while true; do
	"$@" 2>&1 | tail -n 1
	sleep 0.25
done
