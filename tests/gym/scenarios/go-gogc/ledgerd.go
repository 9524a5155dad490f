package main

import (
	"fmt"
	"time"
)

type entry struct {
	next *entry
	text string
}

var book = map[int]*entry{}

//go:noinline
func bookEntry(n int) {
	book[n%300000] = &entry{text: fmt.Sprint("entry ", n)}
}

func main() {
	for n := 0; ; n++ {
		bookEntry(n)
		if n%2000 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
