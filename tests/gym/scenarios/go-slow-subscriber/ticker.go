package main

import (
	"net"
	"os"
	"sync"
	"time"
)

type Board struct {
	mu          sync.Mutex
	subscribers []net.Conn
}

//go:noinline
func sendQuote(conn net.Conn, quote []byte) int {
	count, _ := conn.Write(quote)
	return count
}

//go:noinline
func (b *Board) publish(quote []byte) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	sent := 0
	for _, conn := range b.subscribers {
		sent += sendQuote(conn, quote)
	}
	return sent
}

//go:noinline
func (b *Board) subscribe(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers = append(b.subscribers, conn)
}

func main() {
	board := &Board{}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	for source := 0; source < 4; source++ {
		go func() {
			quote := make([]byte, 1500)
			for {
				board.publish(quote)
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	for {
		conn, err := listener.Accept()
		if err == nil {
			conn.(*net.TCPConn).SetWriteBuffer(4096)
			board.subscribe(conn)
		}
	}
}
