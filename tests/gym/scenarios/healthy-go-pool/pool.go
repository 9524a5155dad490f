package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

type job struct {
	path string
	done chan string
}

var (
	jobs = make(chan job)
	lock sync.Mutex
	seen = map[string]int{}
)

func work() {
	for one := range jobs {
		time.Sleep(3 * time.Millisecond)
		lock.Lock()
		seen[one.path]++
		lock.Unlock()
		one.done <- "done"
	}
}

func main() {
	for n := 0; n < 6; n++ {
		go work()
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		one := job{r.URL.Path, make(chan string)}
		jobs <- one
		fmt.Fprint(w, <-one.done)
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
