package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

var mutex sync.Mutex
var page string
var until time.Time

//go:noinline
func rebuildPage() string {
	sum := sha256.Sum256([]byte("news"))
	for i := 0; i < 400000; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return fmt.Sprint(sum)
}

func serve(w http.ResponseWriter, r *http.Request) {
	mutex.Lock()
	fresh, text := time.Now().Before(until), page
	mutex.Unlock()
	if !fresh {
		text = rebuildPage()
		mutex.Lock()
		page, until = text, time.Now().Add(300*time.Millisecond)
		mutex.Unlock()
	}
	fmt.Fprint(w, text)
}

func main() {
	http.HandleFunc("/", serve)
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
