package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

var gate sync.Mutex

func serve(w http.ResponseWriter, r *http.Request) {
	gate.Lock()
	time.Sleep(60 * time.Millisecond)
	gate.Unlock()
	fmt.Fprint(w, "ok")
}

func main() {
	http.HandleFunc("/", serve)
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
