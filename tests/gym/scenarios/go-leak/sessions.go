package main

import "time"

var sessions = map[int][]byte{}

//go:noinline
func trackSession(id int) {
	data := make([]byte, 20000)
	for i := range data {
		data[i] = byte(id)
	}
	sessions[id] = data
}

func main() {
	for id := 0; ; id++ {
		trackSession(id)
		time.Sleep(10 * time.Millisecond)
	}
}
