package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type job struct {
	path  string
	reply chan string
}

type farm struct {
	jobs   chan job
	origin string
}

func newFarm(size int, origin string) *farm {
	f := &farm{jobs: make(chan job), origin: origin}
	for i := 0; i < size; i++ {
		go f.work()
	}
	return f
}

func (f *farm) work() {
	for one := range f.jobs {
		one.reply <- f.renderTile(one.path)
	}
}

func (f *farm) renderTile(path string) string {
	response, err := http.Get(f.origin + path)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

func (f *farm) submit(path string) string {
	one := job{path, make(chan string)}
	f.jobs <- one
	return <-one.reply
}

func main() {
	f := newFarm(3, "http://127.0.0.1:"+os.Args[2])
	http.HandleFunc("/tiles/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, f.submit(r.URL.Path))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
