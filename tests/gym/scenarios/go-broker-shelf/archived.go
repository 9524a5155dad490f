package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

type document struct {
	name  string
	reply chan int
}

type archive struct {
	incoming chan document
	shelf    map[string]int
	guard    sync.RWMutex
}

// The disk of the archive allows one writer, which pauses for its verification.
func (a *archive) storeAndVerify(d document) int {
	f, err := os.CreateTemp("", "archived")
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	n, _ := f.WriteString(d.name)
	time.Sleep(70 * time.Millisecond)
	return n
}

func (a *archive) serveShelf() {
	for d := range a.incoming {
		n := a.storeAndVerify(d)
		a.guard.Lock()
		a.shelf[d.name] = n
		a.guard.Unlock()
		d.reply <- n
	}
}

func (a *archive) putDocument(name string) int {
	reply := make(chan int)
	a.incoming <- document{name, reply}
	return <-reply
}

func main() {
	a := &archive{incoming: make(chan document), shelf: map[string]int{}}
	go a.serveShelf()
	http.HandleFunc("/doc/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, a.putDocument(r.URL.Path))
	})
	http.ListenAndServe(os.Args[1], nil)
}
