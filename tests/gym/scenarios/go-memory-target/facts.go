package main

import (
	"fmt"
	"net/http"
	"os"
)

type Fact struct {
	next  *Fact
	words [4]*string
}

//go:noinline
func learnFacts(many int) *Fact {
	var first *Fact
	for number := 0; number < many; number++ {
		text := fmt.Sprint("fact ", number)
		first = &Fact{next: first, words: [4]*string{&text}}
	}
	return first
}

//go:noinline
func answerFact(facts *Fact) int {
	sum := 0
	for _, text := range []string{"who", "when", "where"} {
		buffer := make([]byte, 200000)
		copy(buffer, text)
		sum += len(buffer) + len(*facts.words[0])
	}
	return sum
}

func main() {
	facts := learnFacts(1000000)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, answerFact(facts))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
