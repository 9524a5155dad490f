package main

import (
	"fmt"
	"time"
)

var played int

//go:noinline
func pollInputs(left, right chan int, done chan bool) {
	for {
		select {
		case n := <-left:
			played += n
		case n := <-right:
			played += n
		case <-done:
			return
		default:
		}
	}
}

func main() {
	left, right, done := make(chan int), make(chan int), make(chan bool)
	go pollInputs(left, right, done)
	for {
		time.Sleep(50 * time.Millisecond)
		left <- 1
		right <- 1
		if played < 0 {
			fmt.Println(played)
		}
	}
}
