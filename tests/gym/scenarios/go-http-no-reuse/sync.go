package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func fetchPrice(address string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + address + "/price")
	if err == nil {
		answer.Body.Close()
	}
}

func main() {
	if os.Args[1] == "serve" {
		http.HandleFunc("/price", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "7.5") })
		http.ListenAndServe("127.0.0.1:"+os.Args[2], nil)
	}
	for i := 0; i < 6; i++ {
		go func() {
			for {
				fetchPrice(os.Args[2])
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	select {}
}
