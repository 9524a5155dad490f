package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

var titles []string

func matchTitles(word string) (n int) {
	for _, title := range titles {
		if strings.Contains(title, word) {
			n++
		}
	}
	return n
}

func main() {
	for i := 0; i < 30000; i++ {
		titles = append(titles, fmt.Sprintf("a book about subject %d and its friends", i))
	}
	http.HandleFunc("/q", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, matchTitles("subject 77"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
