package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
)

var (
	once  sync.Once
	items string
)

//go:noinline
func fetchCatalog(address string) string {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	fmt.Fprintln(conn, "LIST")
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line
}

//go:noinline
func loadCatalog() string {
	once.Do(func() { items = fetchCatalog("127.0.0.1:" + os.Args[2]) })
	return items
}

//go:noinline
func handleItem(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, loadCatalog())
}

func main() {
	http.HandleFunc("/", handleItem)
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
