package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

var client = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

//go:noinline
func fetchRate(url string) (string, error) {
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 200 {
		return "", fmt.Errorf("status %d", answer.StatusCode)
	}
	return string(text), nil
}

//go:noinline
func rateWithRetries(url string) string {
	for try := 0; try < 1500; try++ {
		if rate, err := fetchRate(url); err == nil {
			return rate
		}
	}
	return "none"
}

func main() {
	url := "http://127.0.0.1:" + os.Args[2] + "/rate"
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, rateWithRetries(url))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
