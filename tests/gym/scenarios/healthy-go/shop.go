package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	var lock sync.Mutex
	seen := map[string]int{}
	jobs := make(chan string, 100)
	for i := 0; i < 4; i++ {
		go func() {
			for range jobs {
				time.Sleep(time.Millisecond)
			}
		}()
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		seen[r.URL.Path]++
		lock.Unlock()
		jobs <- r.URL.Path
		fmt.Fprint(w, len(seen))
	})
	http.ListenAndServe(os.Args[1], nil)
}
