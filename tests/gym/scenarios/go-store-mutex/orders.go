package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
)

// Store speaks the line protocol of the ledger.
type Store struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

func Open(address string) (*Store, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Store{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (s *Store) query(text string) (string, error) {
	if _, err := fmt.Fprintln(s.conn, text); err != nil {
		return "", err
	}
	return s.in.ReadString('\n')
}

func (s *Store) LoadOrder(id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.query("GET " + id)
}

type orderHandler struct{ store *Store }

func (h *orderHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order, err := h.store.LoadOrder(r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	fmt.Fprint(w, order)
}

func main() {
	store, err := Open("127.0.0.1:" + os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/orders/", &orderHandler{store})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], mux))
}
