package main

import (
	"net"
	"os"
	"time"
)

//go:noinline
func sendMetric(to net.Conn, text []byte) {
	to.Write(text)
}

func main() {
	to, _ := net.Dial("udp", os.Args[1])
	text := []byte("orders.count:1|c")
	for {
		for i := 0; i < 400; i++ {
			sendMetric(to, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
