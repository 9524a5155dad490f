package main

import "time"

//go:noinline
func shrinkImage(n int) (sum int) {
	for i := 0; i < 4000000; i++ {
		sum += i * n % 7
	}
	return
}

var total int

func main() {
	for n := 0; ; n++ {
		total += shrinkImage(n)
		time.Sleep(time.Millisecond)
	}
}
