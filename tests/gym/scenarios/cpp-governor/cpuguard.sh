#!/bin/sh
# keeps a process below 40 % of a CPU
while kill -STOP "$1"
do
	sleep 0.3
	kill -CONT "$1"
	sleep 0.2
done
