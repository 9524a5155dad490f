package main

import (
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"
)

var path string

//go:noinline
func writeReport(file *os.File) int {
	time.Sleep(40 * time.Millisecond)
	count, _ := file.WriteAt([]byte("report\n"), 0)
	return count
}

//go:noinline
func withFileLock() int {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0600)
	if err != nil {
		return 0
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX) != nil {
		return 0
	}
	return writeReport(file)
}

func main() {
	path = os.Args[2]
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, withFileLock())
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
