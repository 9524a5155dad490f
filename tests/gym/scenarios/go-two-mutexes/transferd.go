package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type account struct {
	sync.Mutex
	cents int
}

var savings, checking account

//go:noinline
func moveToSavings() {
	checking.Lock()
	defer checking.Unlock()
	time.Sleep(20 * time.Millisecond)
	savings.Lock()
	defer savings.Unlock()
	savings.cents++
}

//go:noinline
func moveToChecking() {
	savings.Lock()
	defer savings.Unlock()
	time.Sleep(20 * time.Millisecond)
	checking.Lock()
	defer checking.Unlock()
	checking.cents++
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "1") || strings.HasSuffix(r.URL.Path, "3") {
			moveToSavings()
		} else {
			moveToChecking()
		}
		io.WriteString(w, "ok")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
