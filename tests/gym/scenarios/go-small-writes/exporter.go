package main

import (
	"fmt"
	"os"
)

func writeField(file *os.File, value int) {
	fmt.Fprintf(file, "%d;", value)
}

func main() {
	file, _ := os.Create(os.Args[1])
	for n := 0; ; n++ {
		writeField(file, n)
		if n%1000000 == 0 {
			file.Truncate(0)
			file.Seek(0, 0)
		}
	}
}
