package main

import "sync"

//go:noinline
func solve(n uint64) uint64 {
	for i := uint64(0); i < 1<<20; i++ {
		n = n*2862933555777941757 + 3037000493
	}
	return n
}

func main() {
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func(n uint64) {
			for {
				n = solve(n)
			}
		}(uint64(i))
	}
	group.Wait()
}
