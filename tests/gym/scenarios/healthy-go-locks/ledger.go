package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

var (
	lock   sync.Mutex
	ledger = map[int]string{}
	done   = make(chan int, 100)
)

func main() {
	go func() {
		for n := range done {
			lock.Lock()
			delete(ledger, n-1000)
			lock.Unlock()
		}
	}()
	go func() {
		for range time.Tick(time.Second) {
			lock.Lock()
			time.Sleep(5 * time.Millisecond)
			lock.Unlock()
		}
	}()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		n := len(ledger)
		ledger[n] = r.URL.Path
		lock.Unlock()
		done <- n
		fmt.Fprint(w, n)
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
