package main

import (
	"net"
	"os"
	"time"
)

//go:noinline
func pushMetrics(address string) {
	connection, err := net.Dial("tcp", address)
	if err == nil {
		connection.Close()
	}
}

func main() {
	for {
		pushMetrics(os.Args[1])
		time.Sleep(100 * time.Millisecond)
	}
}
