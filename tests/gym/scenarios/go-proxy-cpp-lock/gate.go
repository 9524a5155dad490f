package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	back, _ := url.Parse("http://127.0.0.1:" + os.Args[2])
	http.Handle("/", httputil.NewSingleHostReverseProxy(back))
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
