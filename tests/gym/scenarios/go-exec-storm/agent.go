package main

import (
	"os/exec"
	"time"
)

//go:noinline
func readHost() {
	exec.Command("/bin/hostname").Output()
}

func main() {
	for {
		readHost()
		time.Sleep(2 * time.Millisecond)
	}
}
