#!/bin/sh
while true; do
	"$1" resize.py
	sleep 0.1
done
