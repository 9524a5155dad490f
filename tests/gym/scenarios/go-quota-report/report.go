package main

import (
	"encoding/json"
	"net/http"
	"os"
)

type line struct {
	Article string  `json:"article"`
	Count   int     `json:"count"`
	Price   float64 `json:"price"`
}

type report struct {
	Lines []line `json:"lines"`
}

func (r *report) encode() []byte {
	text, _ := json.MarshalIndent(r, "", "  ")
	return text
}

func main() {
	http.HandleFunc("/report", func(w http.ResponseWriter, q *http.Request) {
		var one report
		for i := 0; i < 4000; i++ {
			one.Lines = append(one.Lines, line{"bolt", i, float64(i) * 0.37})
		}
		w.Write(one.encode())
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
