package main

import (
	"fmt"
	"net/http"
	"os"
	"sort"
	"sync"
)

type Row struct {
	tenant string
	count  int
}

var (
	mu   sync.RWMutex
	rows []Row
)

//go:noinline
func sortRows() {
	sort.Slice(rows, func(i, j int) bool { return rows[i].count*7919%10007 < rows[j].count*7919%10007 })
}

//go:noinline
func recordUsage(tenant string) int {
	mu.Lock()
	defer mu.Unlock()
	rows[len(tenant)].count++
	for i := range rows {
		rows[i].count = (rows[i].count*31 + i) % 65521
	}
	sortRows()
	return rows[0].count
}

func main() {
	rows = make([]Row, 60000)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, recordUsage(r.RemoteAddr))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
