package main

import (
	"net"
	"os"
	"time"
)

var members []net.Conn

func admit(listener net.Listener) {
	member, err := listener.Accept()
	if err != nil {
		time.Sleep(5 * time.Millisecond)
		return
	}
	members = append(members, member)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		admit(listener)
	}
}
