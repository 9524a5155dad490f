package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
)

type store struct {
	free chan net.Conn
}

func (s *store) addItem(cart string) string {
	conn := <-s.free
	defer func() { s.free <- conn }()
	fmt.Fprintf(conn, "*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n", len(cart), cart)
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line
}

func main() {
	s := &store{make(chan net.Conn, 10)}
	for i := 0; i < 10; i++ {
		conn, err := net.Dial("tcp", os.Args[2])
		if err != nil {
			panic(err)
		}
		s.free <- conn
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, s.addItem(r.URL.Path))
	})
	http.ListenAndServe(os.Args[1], nil)
}
