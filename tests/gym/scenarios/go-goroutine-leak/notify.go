package main

import (
	"fmt"
	"net/http"
	"os"
)

func awaitReceipt(receipt chan []byte) {
	var page [6000]byte
	copy(page[:], <-receipt)
	fmt.Fprintln(os.Stderr, page[0])
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		go awaitReceipt(make(chan []byte))
		fmt.Fprint(w, "sent")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
