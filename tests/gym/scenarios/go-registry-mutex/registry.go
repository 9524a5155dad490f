package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
)

type Registry struct {
	mu   sync.Mutex
	path string
}

func (r *Registry) Resolve(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.Open(r.path)
	if err != nil {
		return ""
	}
	defer file.Close()
	found := ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 2 && words[1] == name {
			found = words[0]
		}
	}
	return found
}

func main() {
	registry := &Registry{path: os.Args[2]}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, registry.Resolve(r.URL.Query().Get("name")))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
