package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

var words []string

//go:noinline
func searchWords(part string) int {
	found := 0
	for _, word := range words {
		if strings.Contains(word, part) {
			found++
		}
	}
	return found
}

func main() {
	for i := 0; i < 20000; i++ {
		words = append(words, fmt.Sprint("word", i))
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, searchWords(r.URL.Path[1:]))
	})
	http.ListenAndServe(os.Args[1], nil)
}
