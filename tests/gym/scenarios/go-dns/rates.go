package main

import (
	"net"
	"net/http"
	"os"
)

func quote(w http.ResponseWriter, r *http.Request) {
	_, err := net.LookupHost("bank.example")
	if err != nil {
		http.Error(w, "no rate", 503)
	}
}

func main() {
	http.ListenAndServe(os.Args[1], http.HandlerFunc(quote))
}
