package main

import (
	"os/exec"
	"time"
)

//go:noinline
func sendMail() {
	exec.Command("/bin/true").Start()
}

func main() {
	for {
		sendMail()
		time.Sleep(100 * time.Millisecond)
	}
}
