package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

var outbox = make(chan string)

func deliver() {
	for range outbox {
		time.Sleep(80 * time.Millisecond)
	}
}

func main() {
	go deliver()
	http.HandleFunc("/mail", func(w http.ResponseWriter, r *http.Request) {
		outbox <- r.URL.Path
		fmt.Fprint(w, "queued")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
