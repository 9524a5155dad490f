package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync"
)

type cache struct {
	sync.RWMutex
	entries map[string][]byte
}

func (c *cache) get(key string, make func() []byte) []byte {
	c.RLock()
	found, ok := c.entries[key]
	c.RUnlock()
	if ok {
		return found
	}
	made := make()
	c.Lock()
	c.entries[key] = made
	c.Unlock()
	return made
}

func scaleDown(id string) []byte {
	return bytes.Repeat([]byte(id), 6000)
}

func main() {
	kept := &cache{entries: map[string][]byte{}}
	http.HandleFunc("/thumb", func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		thumb := kept.get(id, func() []byte { return scaleDown(id) })
		fmt.Fprintln(w, len(thumb))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
