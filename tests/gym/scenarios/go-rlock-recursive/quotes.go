package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

type Book struct {
	mu    sync.RWMutex
	rates map[string]float64
}

//go:noinline
func (b *Book) convert(name string, amount float64) float64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.rates[name] * amount
}

//go:noinline
func (b *Book) quote(name string) float64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	time.Sleep(2 * time.Millisecond)
	return b.convert(name, 100)
}

func (b *Book) refresh() {
	for {
		b.mu.Lock()
		b.rates["eur"] += 0.01
		b.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
}

func main() {
	book := &Book{rates: map[string]float64{"eur": 1.1}}
	go book.refresh()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, book.quote("eur"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
