package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

type shop struct {
	base string
}

func (s shop) price() string {
	answer, err := http.Get(s.base + "/price")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

type market []shop

func (m market) gather() []string {
	prices := make([]string, len(m))
	var all sync.WaitGroup
	for i, one := range m {
		all.Add(1)
		go func(i int, one shop) {
			defer all.Done()
			prices[i] = one.price()
		}(i, one)
	}
	all.Wait()
	return prices
}

func main() {
	var shops market
	for _, port := range os.Args[2:] {
		shops = append(shops, shop{"http://127.0.0.1:" + port})
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, shops.gather())
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
