package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func command(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

type store struct {
	address string
}

func (s *store) readTimeline(user string) int {
	connection, err := net.Dial("tcp", s.address)
	if err != nil {
		return 0
	}
	defer connection.Close()
	io.WriteString(connection, command("LRANGE", user, "0", "-1"))
	reader := bufio.NewReader(connection)
	head, _ := reader.ReadString('\n')
	many, _ := strconv.Atoi(strings.TrimSpace(head[1:]))
	for i := 0; i < 2*many; i++ {
		reader.ReadString('\n')
	}
	return many
}

func main() {
	kept := &store{"127.0.0.1:" + os.Args[2]}
	connection, _ := net.Dial("tcp", kept.address)
	reader := bufio.NewReader(connection)
	for i := 0; i < 200; i++ {
		words := []string{"RPUSH", "ann"}
		for j := 0; j < 500; j++ {
			words = append(words, fmt.Sprint("post ", i*500+j))
		}
		io.WriteString(connection, command(words...))
		reader.ReadString('\n')
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, kept.readTimeline("ann"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
