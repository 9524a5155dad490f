package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

type lease struct {
	id   int
	used time.Time
}

// Leases hands out sessions of the backend; there are plenty.
type Leases struct {
	mu   sync.Mutex
	idle []*lease
	next int
}

func (l *Leases) take() *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		one := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return one
	}
	l.next++
	return &lease{id: l.next}
}

func (l *Leases) give(one *lease) {
	one.used = time.Now()
	l.mu.Lock()
	l.idle = append(l.idle, one)
	l.mu.Unlock()
}

func report(l *Leases) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		one := l.take()
		defer l.give(one)
		total := 0
		for i := 0; i < 200000; i++ {
			total += i * one.id
		}
		fmt.Fprintf(w, "%d", total)
	}
}

func main() {
	http.HandleFunc("/report", report(&Leases{}))
	go func() {
		for range time.Tick(500 * time.Millisecond) {
			log.Print("alive")
		}
	}()
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
