package main

import (
	"io"
	"net/http"
	"os"
)

type job struct {
	done chan string
}

var jobs = make(chan job)

//go:noinline
func printLabel(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return "none"
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

func worker(url string) {
	for one := range jobs {
		one.done <- printLabel(url)
	}
}

//go:noinline
func queueLabel() string {
	one := job{make(chan string)}
	jobs <- one
	return <-one.done
}

func main() {
	url := "http://127.0.0.1:" + os.Args[2] + "/label"
	for i := 0; i < 2; i++ {
		go worker(url)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, queueLabel())
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
