package main

import "os"

//go:noinline
func saveOrder(file *os.File) {
	file.WriteAt(make([]byte, 300), 0)
	file.Sync()
}

func main() {
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		saveOrder(file)
	}
}
