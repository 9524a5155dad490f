package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	conn, err := net.Dial("udp", "127.0.0.1:"+os.Args[2])
	if err != nil {
		os.Exit(1)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(conn, "requests:1|c")
		fmt.Fprintf(conn, "bytes:%d|c", len(r.URL.Path))
		fmt.Fprintln(w, "ok")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
