package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

var address string

//go:noinline
func count(name string, value int) {
	for attempt := 0; attempt < 3; attempt++ {
		conn, err := net.Dial("udp", address)
		if err != nil {
			continue
		}
		_, first := fmt.Fprintf(conn, "%s:%d|c", name, value)
		_, second := fmt.Fprintf(conn, "%s.sum:%d|c", name, value)
		conn.Close()
		if first == nil && second == nil {
			return
		}
	}
}

func main() {
	address = "127.0.0.1:" + os.Args[2]
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for item := 0; item < 60; item++ {
			count("item", item)
		}
		fmt.Fprintln(w, "ok")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
