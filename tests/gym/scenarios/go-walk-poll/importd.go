package main

import (
	"os"
	"path/filepath"
	"time"
)

var newest time.Time

//go:noinline
func findNewOrders(root string) (fresh []string) {
	latest := newest
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && info.ModTime().After(newest) {
			fresh = append(fresh, path)
			if info.ModTime().After(latest) {
				latest = info.ModTime()
			}
		}
		return nil
	})
	newest = latest
	return fresh
}

func main() {
	for {
		findNewOrders(os.Args[1])
		time.Sleep(20 * time.Millisecond)
	}
}
