package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
)

func matchRules(text string) int {
	matched := 0
	for n := 0; n < 200; n++ {
		rule := regexp.MustCompile(fmt.Sprintf("^(order|item|parcel)s? ([a-z]+-)*%d[0-9]{2,8}$", n))
		if rule.MatchString(text) {
			matched++
		}
	}
	return matched
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, matchRules(r.URL.Query().Get("q")))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
