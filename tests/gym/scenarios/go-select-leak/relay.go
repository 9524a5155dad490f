package main

import "time"

func watch(cancel chan struct{}, expired <-chan time.Time) int {
	select {
	case <-cancel:
		return 1
	case <-expired:
		return 2
	}
}

func main() {
	for {
		go watch(make(chan struct{}), nil)
		time.Sleep(8 * time.Millisecond)
	}
}
