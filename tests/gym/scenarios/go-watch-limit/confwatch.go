package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

type Watcher struct {
	fd    int
	known map[string]int
}

// AddFolder begins to watch a folder, and tells on stderr if it cannot.
func (w *Watcher) AddFolder(path string) error {
	if _, has := w.known[path]; has {
		return nil
	}
	wd, err := syscall.InotifyAddWatch(w.fd, path, syscall.IN_CLOSE_WRITE|syscall.IN_CREATE)
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	w.known[path] = wd
	return nil
}

func (w *Watcher) ScanTree(root string) (failed int) {
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() && w.AddFolder(path) != nil {
			failed++
		}
		return nil
	})
	return failed
}

func main() {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	watcher := &Watcher{fd: fd, known: map[string]int{}}
	for {
		if failed := watcher.ScanTree(os.Args[1]); failed > 0 {
			fmt.Println("folders without a watch:", failed)
		}
		time.Sleep(500 * time.Millisecond)
	}
}
