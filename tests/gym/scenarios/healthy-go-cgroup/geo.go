package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"sync"
	"time"
)

type Place struct{ lat, lon float64 }

type Index struct {
	mu     sync.RWMutex
	places []Place
}

func (x *Index) Nearest(lat, lon float64) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	best, at := math.MaxFloat64, 0
	for i, p := range x.places {
		if d := math.Hypot(p.lat-lat, p.lon-lon); d < best {
			best, at = d, i
		}
	}
	return at
}

func (x *Index) refresh() {
	for range time.Tick(2 * time.Second) {
		x.mu.Lock()
		x.places[0].lat += 0.001
		x.mu.Unlock()
	}
}

func main() {
	index := &Index{}
	for i := 0; i < 4000; i++ {
		index.places = append(index.places, Place{float64(i % 90), float64(i % 180)})
	}
	go index.refresh()
	http.HandleFunc("/near", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, index.Nearest(48.1, 11.6))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
