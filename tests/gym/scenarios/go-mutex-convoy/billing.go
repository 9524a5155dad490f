package main

import (
	"crypto/sha256"
	"sync"
	"time"
)

var mutex sync.Mutex
var total [32]byte

//go:noinline
func encodeInvoice(data []byte) {
	mutex.Lock()
	defer mutex.Unlock()
	for i := 0; i < 40; i++ {
		total = sha256.Sum256(data)
	}
}

func serve() {
	data := make([]byte, 4096)
	for {
		encodeInvoice(data)
		time.Sleep(time.Millisecond)
	}
}

func main() {
	for i := 0; i < 50; i++ {
		go serve()
	}
	select {}
}
