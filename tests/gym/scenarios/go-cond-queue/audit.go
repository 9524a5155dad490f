package main

import (
	"net/http"
	"os"
	"sync"
	"time"
)

type boundedQueue struct {
	sync.Mutex
	notFull, notEmpty *sync.Cond
	entries           []string
}

func newQueue() *boundedQueue {
	q := &boundedQueue{}
	q.notFull, q.notEmpty = sync.NewCond(q), sync.NewCond(q)
	return q
}

func (q *boundedQueue) Put(entry string) {
	q.Lock()
	defer q.Unlock()
	for len(q.entries) >= 4 {
		q.notFull.Wait()
	}
	q.entries = append(q.entries, entry)
	q.notEmpty.Signal()
}

func (q *boundedQueue) Take() string {
	q.Lock()
	defer q.Unlock()
	for len(q.entries) == 0 {
		q.notEmpty.Wait()
	}
	entry := q.entries[0]
	q.entries = q.entries[1:]
	q.notFull.Signal()
	return entry
}

func writeAudit(file *os.File, q *boundedQueue) {
	for {
		file.WriteString(q.Take() + "\n")
		time.Sleep(25 * time.Millisecond)
	}
}

func main() {
	file, _ := os.Create(os.Args[2])
	queue := newQueue()
	go writeAudit(file, queue)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		queue.Put(r.URL.Path)
		w.Write([]byte("ok"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
