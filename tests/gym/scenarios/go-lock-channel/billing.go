package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
)

var (
	ledgerLock sync.Mutex
	entries    = make(chan string)
	total      int
)

func postEntries() {
	for {
		ledgerLock.Lock()
		total++
		ledgerLock.Unlock()
		<-entries
	}
}

func main() {
	go postEntries()
	http.HandleFunc("/bill", func(w http.ResponseWriter, r *http.Request) {
		ledgerLock.Lock()
		entries <- r.URL.Path
		entries <- "tax"
		ledgerLock.Unlock()
		fmt.Fprint(w, "billed")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
