package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

var padding = strings.Repeat("x", 2000)

func passGate(w http.ResponseWriter, r *http.Request) {
	for i := 0; i < 4; i++ {
		log.Printf("car %d %s", i, padding)
	}
	fmt.Fprint(w, "open")
}

func main() {
	http.HandleFunc("/", passGate)
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
