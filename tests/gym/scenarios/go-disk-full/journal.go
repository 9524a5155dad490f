package main

import (
	"os"
	"time"
)

//go:noinline
func appendEntry(path string, entry []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(entry)
	return err
}

func main() {
	entry := make([]byte, 4096)
	for {
		if appendEntry(os.Args[1], entry) != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}
