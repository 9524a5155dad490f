package main

import (
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("1.0831"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
