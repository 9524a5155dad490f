package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

var (
	tableLock sync.RWMutex
	table     = map[string]string{}
)

func reload() {
	tableLock.Lock()
	defer tableLock.Unlock()
	time.Sleep(300 * time.Millisecond)
	table["/"] = "home"
}

func findRoute(path string) string {
	tableLock.RLock()
	defer tableLock.RUnlock()
	return table[path]
}

func main() {
	go func() {
		for {
			reload()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, findRoute(r.URL.Path))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
