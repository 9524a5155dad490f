package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

//go:noinline
func localAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil || len(addresses) == 0 {
		return "?"
	}
	return addresses[0].String()
}

//go:noinline
func nodeName(item int) string {
	return fmt.Sprintf("%s-%d", localAddress(), item)
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for item := 0; item < 200; item++ {
			fmt.Fprintln(w, nodeName(item))
		}
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
