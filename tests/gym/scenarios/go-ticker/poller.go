package main

import "time"

var seen int

//go:noinline
func pollQueue() {
	seen++
}

func main() {
	for range time.Tick(100 * time.Microsecond) {
		pollQueue()
	}
}
