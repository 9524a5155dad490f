package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

type Journal struct{ conn net.Conn }

func (j *Journal) Note(format string, args ...any) {
	fmt.Fprintf(j.conn, format, args...)
}

type Cart struct {
	journal *Journal
	items   int
}

func (c *Cart) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.journal.Note("<14>cart: %s asked for %d items", r.RemoteAddr, c.items)
	fmt.Fprintln(w, c.items)
}

func main() {
	conn, err := net.Dial("unixgram", os.Args[2])
	if err != nil {
		panic(err)
	}
	http.Handle("/cart", &Cart{&Journal{conn}, 3})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
