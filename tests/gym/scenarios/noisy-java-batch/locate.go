package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

func nearest(path string) int {
	best := 0
	for i := 0; i < 400000; i++ {
		best ^= i * len(path)
	}
	return best
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, nearest(r.URL.Path))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
