package main

import (
	"io"
	"net/http"
	"os"
)

var permits = make(chan struct{}, 2)

func askQuote() ([]byte, error) {
	permits <- struct{}{}
	defer func() { <-permits }()
	answer, err := http.Get("http://127.0.0.1:" + os.Args[2] + "/quote")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		quote, _ := askQuote()
		w.Write(quote)
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
